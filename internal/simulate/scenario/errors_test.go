package scenario_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// Every error of a file is told at once, with its place, field, reason and remedy.
func TestInvalidFilesTellEverythingAtOnce(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			s, err := scenario.Parse(filepath.Base(f), data)
			if err == nil || s != nil {
				t.Fatalf("accepted: %+v, %v", s, err)
			}
			golden(t, "invalid/"+filepath.Base(f)+".golden", []byte(err.Error()+"\n"))
			var list policy.Errors
			if !errors.As(err, &list) {
				t.Fatalf("%T, want policy.Errors", err)
			}
			for i, e := range list {
				if e.File == "" || e.Line == 0 || e.Col == 0 || e.Reason == "" {
					t.Errorf("no place or reason: %+v", e)
				}
				if i > 0 && e.Line < list[i-1].Line {
					t.Errorf("not sorted: %v after %v", e, list[i-1])
				}
			}
		})
	}
}

func TestWhatIsNoScenario(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "f: is empty"},
		"comment":       {"# nothing\n", "f: is empty"},
		"null":          {"~\n", "f: is empty"},
		"a list":        {"- a\n", "f:1:1: want an object, got a list"},
		"two documents": {least + "---\npods: 3\n", "f:8:1: has a second document"},
		"large":         {least + "#" + strings.Repeat("x", scenario.MaxFile), "f: has 4194"},
		"control":       {"\x00", "f: no YAML: "},
		"alias of self": {"traffic: &a [*a]\n", "f:1:14: traffic[0]: is an alias"},
		"deep":          {"pods: " + strings.Repeat("[", 20_000), "f: no YAML: exceeded max depth"},
		"deep headers":  {strings.Replace(least, "pods: all", "headers: "+strings.Repeat("{a: ", 100)+"b"+strings.Repeat("}", 100)+", pods: all", 1), "want a string, got an object"},
		"binary":        {strings.Replace(least, "pods: 3", "name: !!binary c21hbGw=", 1), "name: want a string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.Parse("f", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestErrorsAreBounded(t *testing.T) {
	for name, item := range map[string]string{"unknown": "{x: 1}", "of a type": "x", "missing": "{}"} {
		text := strings.Replace(least, "- {", "- "+strings.Repeat(item+"\n- ", 900)+"{", 1)
		_, err := scenario.Parse("f", []byte(text))
		var list policy.Errors
		if !errors.As(err, &list) || len(list) != 101 || !strings.HasSuffix(err.Error(), "f: has more errors than these; mend these first") {
			t.Errorf("%s: %d errors, %v", name, len(list), err)
		}
	}
}

func TestATitleIsText(t *testing.T) {
	for title, want := range map[string]string{
		"sticky traffic at 0.8x: no refusal is right": "sticky traffic at 0.8x: no refusal is right",
		"it's: both ": "it's: both",
		`"a: b"`:      "a: b",
		"plain":       "plain",
	} {
		if got := parse(t, "title: "+title+least).Title; got != want {
			t.Errorf("%q: %q", title, got)
		}
	}
	_, err := scenario.Parse("f", []byte("title: a: b\nname: a: b"+least))
	if err == nil || !strings.HasPrefix(err.Error(), "f: no YAML: mapping values are not allowed") {
		t.Errorf("another thing that is no YAML: %v", err)
	}
}
