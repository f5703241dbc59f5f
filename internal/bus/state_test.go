package bus

import (
	"errors"
	"testing"
)

func TestReasonsComeOnChangeOnly(t *testing.T) {
	got := &tape{}
	s := states{f: func(r string) { got.add("[%s]", r) }}
	for _, step := range []struct{ key, reason string }{
		{"a", ""}, {"a", "x"}, {"a", "x"}, {"b", "w"}, {"b", ""}, {"b", "y"}, {"a", ""}, {"b", ""}, {"b", ""},
	} {
		s.set(step.key, reason{step.reason, step.reason})
	}
	if want := "[x] [y] []"; got.String() != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReasonOfAnErrorIsShortAndStable(t *testing.T) {
	for in, want := range map[string]string{
		"read tcp 127.0.0.1:40122->127.0.0.1:9092: reset\nand more": "read tcp 127.0.0.1:9092: reset",
		"[::1]:5->[::1]:6: eof": "[::1]:6: eof",
		"":                      "",
		"->":                    "",
	} {
		if got := brief(errors.New(in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
