package v1alpha1

import (
	"encoding/json"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{`"1s"`: time.Second, `"1m"`: time.Minute, `"500ms"`: 500 * time.Millisecond} {
		var d, again Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil || d.Duration != want {
			t.Errorf("%s: %v, %v", text, d, err)
		}
		out, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &again); err != nil || again != d {
			t.Errorf("%s: written %s, read %v, %v", text, out, again, err)
		}
	}
	for _, bad := range []string{`1`, `"1"`, `"x"`, `null1`} {
		var d Duration
		if json.Unmarshal([]byte(bad), &d) == nil {
			t.Errorf("%s accepted as %v", bad, d)
		}
	}
}

func TestOvercommit(t *testing.T) {
	for _, text := range []string{`"Learned"`, `"None"`, `0.25`, `0`, `1`} {
		var o Overcommit
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if out, err := json.Marshal(o); err != nil || string(out) != text {
			t.Errorf("%s: written %s, %v", text, out, err)
		}
	}
	for _, text := range []string{"NaN", "Inf", "-inf", "Learned", ""} {
		if part, ok := Overcommit(text).Part(); ok {
			t.Errorf("%s is the number %v", text, part)
		}
	}
	var o Overcommit
	if json.Unmarshal([]byte(`[1]`), &o) == nil {
		t.Error("a list accepted")
	}
}
