package v1alpha1

import (
	"encoding/json"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{`"1s"`: time.Second, `"1m"`: time.Minute, `"500ms"`: 500 * time.Millisecond, `"1h30m"`: 90 * time.Minute, `"1.5s"`: 1500 * time.Millisecond} {
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
	for _, bad := range []string{`1`, `"1"`, `"x"`, `null1`, `"-1s"`, `"1us"`, `"1.0001s"`, `".5s"`, `"0000000000000000000000000000000001s"`} {
		var d Duration
		if json.Unmarshal([]byte(bad), &d) == nil {
			t.Errorf("%s accepted as %v", bad, d)
		}
	}
}

func TestOvercommit(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "0.25": 0.25, "1": 1} {
		if part, ok := Overcommit(text).Part(); !ok || part != want {
			t.Errorf("%s: %v, %v", text, part, ok)
		}
	}
	for _, text := range []string{"NaN", "Inf", "-inf", "Learned", "None", "", ".5", "1e-1", "0x1p-2", "-0", "0.123456789012345"} {
		if part, ok := Overcommit(text).Part(); ok {
			t.Errorf("%s is the number %v", text, part)
		}
	}
}
