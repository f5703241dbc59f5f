package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const good = `# About the file, for whoever edits it.

a:
  # -- What b is
  # for.
  b: 1
  # @schema {enum: [x, "y"]}
  # -- Which.
  c: x
# @schema strings
# -- Labels.
d: {k: v}
# @schema {items: {type: string}, minItems: 1}
# -- Some.
e: []
`

func TestAValueIsWhatItsDefaultAndItsCommentSay(t *testing.T) {
	b, err := fromValues([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"additionalProperties":                   `false`,
		"properties.a.additionalProperties":      `false`,
		"properties.a.properties.b":              `{"description":"What b is for.","type":"integer"}`,
		"properties.a.properties.c":              `{"description":"Which.","enum":["x","y"]}`,
		"properties.d":                           `{"additionalProperties":{"type":"string"},"description":"Labels.","type":"object"}`,
		"properties.e":                           `{"description":"Some.","items":{"type":"string"},"minItems":1,"type":"array"}`,
		"properties.global.type":                 `"object"`,
		"properties.a.properties.b.description":  `"What b is for."`,
		"properties.a.properties.c.enum":         `["x","y"]`,
		"properties.d.additionalProperties.type": `"string"`,
	} {
		if got := at(s, path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

// at is the JSON of what a path of keys leads to.
func at(v any, path string) string {
	for key := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func TestWhatIsNotSaidIsAskedFor(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\n":                                    "1: a: it has no description",
		"# -- A.\na: []\n":                          "2: a: say what it holds: # @schema cpuMemory",
		"# -- A.\na: null\n":                        "say what it holds",
		"# @schema text\n# -- A.\na: {}\n":          "@schema text: it is none of cpuMemory",
		"# @schema {type\n# -- A.\na: {}\n":         "@schema: yaml",
		"x:\n  # -- A.\n  a: 1\n\n  b: 1\n  c: 1\n": "5: x.b: it has no description",
		"- a\n": "no mapping",
		"":      "no mapping",
	} {
		if _, err := fromValues([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestCheckFindsWhatIsOutOfDate(t *testing.T) {
	dir := t.TempDir()
	values := filepath.Join(dir, "values.yaml")
	if err := os.WriteFile(values, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-check", dir}); err == nil || !strings.Contains(err.Error(), "make charts") {
		t.Errorf("without a schema: %v", err)
	}
	if err := run([]string{dir}); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-check", dir}); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(values, []byte(good+"# -- More.\nf: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-check", dir}); err == nil {
		t.Error("a value that came after the schema is not missed")
	}
}
