package policy

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// published are records' documents: of every example, and of the tests' own.
func published(tb testing.TB) (out [][]byte) {
	tb.Helper()
	texts := []string{withOverrides, ordinary, strings.Replace(ordinary, "Learned", `"0.25"`, 1)}
	files, err := filepath.Glob("../../examples/policies/*.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		_, msg, err := Encode(OriginFile, mustParse(tb, text), testKeys(tb), nil)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, msg.GetDocument())
	}
	return out
}

// What a program publishes is read the short way, and as Parse reads it.
func TestPublishedDocumentsAreReadTheShortWay(t *testing.T) {
	for _, text := range published(t) {
		doc := readPublished(text)
		if doc == nil {
			t.Errorf("read the long way: %s", text)
			continue
		}
		if want := mustParse(t, string(text)); !reflect.DeepEqual(doc, want) {
			t.Errorf("%s\nis read as %+v\nwant       %+v", text, doc, want)
		}
	}
}

// The short way is for nothing else: what is written otherwise, or invalid, is Parse's to judge.
func TestOnlyPublishedDocumentsAreReadTheShortWay(t *testing.T) {
	text := published(t)[1]
	for name, change := range map[string][2]string{
		"an unknown field": {`"kind":`, `"kynd":"x","kind":`}, "a repeated field": {`"kind":`, `"kind":"x","kind":`},
		"another case": {`"kind":`, `"Kind":`}, "no value": {`"name":"orders"`, `"name":null`}, "a space": {`"kind":`, `"kind": `},
		"labels":              {`"namespace":"shop"}`, `"namespace":"shop","labels":{"` + strings.Repeat("a", 1100) + `":"v"}}`},
		"a number for a text": {`"name":"orders"`, `"name":7`}, "invalid": {`"limit":20,`, `"limit":-20,`}, "something after it": {"", "{}"},
	} {
		changed := bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1)
		if change[0] == "" {
			changed = append(bytes.Clone(text), change[1]...)
		}
		if bytes.Equal(changed, text) {
			t.Fatalf("%s: nothing to change in %s", name, text)
		}
		if readPublished(changed) != nil {
			t.Errorf("%s: read the short way", name)
		}
	}
	long := bytes.Replace(text, []byte(`"kind":`), []byte(strings.Repeat(" ", maxPublished)+`"kind":`), 1)
	if readPublished(long) != nil {
		t.Error("a document beyond the bound is read the short way")
	}
}

func FuzzPublished(f *testing.F) {
	for _, text := range published(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		doc := readPublished(text)
		if doc == nil {
			return
		}
		docs, err := Parse("f", text)
		if err != nil || len(docs) != 1 || !reflect.DeepEqual(docs[0], doc) {
			t.Errorf("%s\nis read as %+v,\nby Parse as %+v, %v", text, doc, docs, err)
		}
	})
}
