package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const small = `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: small}
spec:
  targetRefs: [{kind: Service, name: small}]
  limits: [{name: all, rates: [{limit: 5, window: 1s}]}]
`

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
			docs, err := Parse(filepath.Base(f), data)
			if err == nil || docs != nil {
				t.Fatalf("accepted: %d documents, %v", len(docs), err)
			}
			golden(t, "invalid/"+filepath.Base(f)+".golden", []byte(err.Error()+"\n"))
			var list Errors
			if !errors.As(err, &list) {
				t.Fatalf("%T, want Errors", err)
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

func TestExamplesAreValid(t *testing.T) {
	files, err := filepath.Glob("../../examples/policies/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	seen := make(map[string]string)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		docs, err := Parse(filepath.Base(f), data)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range docs {
			p, err := Compile(Key{OriginFile, namespaceOf(doc), doc.Metadata.Name}, 1, doc, nil)
			if err != nil {
				t.Fatal(err)
			}
			if seen[p.Name] != "" {
				t.Errorf("%s and %s both define %s", seen[p.Name], f, p.Name)
			}
			seen[p.Name] = f
		}
	}
}

func TestJSONReadsAsYAMLDoes(t *testing.T) {
	docs, err := Parse("a.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	text, err := Marshal(docs[0])
	if err != nil {
		t.Fatal(err)
	}
	var tabs bytes.Buffer
	if err := json.Indent(&tabs, text, "", "\t"); err != nil {
		t.Fatal(err)
	}
	for _, in := range [][]byte{text, tabs.Bytes()} {
		again, err := Parse("a.json", in)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := Marshal(again[0]); !bytes.Equal(got, text) {
			t.Errorf("got  %s\nwant %s", got, text)
		}
	}
}

func TestManyDocumentsKeepTheirLines(t *testing.T) {
	file := "---\n" + small + "---\n---\n" + strings.ReplaceAll(small, "small", "other") + "---\n# nothing\n"
	docs, err := Parse("f", []byte(file))
	if err != nil || len(docs) != 2 {
		t.Fatal(len(docs), err)
	}
	_, err = Parse("f", []byte(file+"---\n"+strings.Replace(small, "limit: 5", "limit: 0", 1)))
	var list Errors
	if !errors.As(err, &list) || len(list) != 2 {
		t.Fatal(err)
	}
	if got := list[0].Error(); !strings.HasPrefix(got, "f:21:12: metadata.name: default/small is already defined at line 4") {
		t.Error(got)
	}
	if got := list[1].Error(); !strings.HasPrefix(got, "f:24:33: spec.limits[0].rates[0].limit: is missing or 0") {
		t.Error(got)
	}
}

func TestBombsAreRefused(t *testing.T) {
	var alias strings.Builder
	alias.WriteString("a0: &a0 [x]\n")
	for i := range 20 {
		a, b := string(rune('a'+i)), string(rune('a'+i+1))
		alias.WriteString(b + "0: &" + b + "0 [" + strings.Repeat("*"+a+"0, ", 10) + "]\n")
	}
	bomb := strings.Replace(small, "metadata: {name: small}", "metadata: {name: small}\n"+alias.String(), 1)
	labels := "metadata: {name: small, labels: {a: &a b, c: *a}}"
	deep := strings.Replace(small, "limit: 5", "limit: "+strings.Repeat("[", 9000)+strings.Repeat("]", 9000), 1)
	loop := strings.Replace(small, "limits: [", "limits: &l [*l, ", 1)
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"alias once":   {strings.Replace(small, "metadata: {name: small}", labels, 1), true},
		"alias bomb":   {bomb, false},
		"used aliases": {string(withClients("{source: Principal, value: a}", 200)), false},
		"deep":         {deep, false},
		"self":         {loop, false},
		"large":        {small + "#" + strings.Repeat("x", MaxDocument), false},
		"many":         {strings.Repeat("a: b\n---\n", maxDocs+1), false},
		"merge key":    {strings.Replace(small, "metadata: {", "metadata: {<<: {labels: {}}, ", 1), false},
		"binary":       {strings.Replace(small, "name: small", "name: !!binary c21hbGw=", 1), false},
		"control":      {"\x00", false},
		"number key":   {strings.Replace(small, "metadata: {", "metadata: {1: 2, ", 1), false},
		"list as key":  {strings.Replace(small, "metadata: {", "metadata: {[a]: 2, ", 1), false},
		"a list":       {"- a", false},
		"a word":       {"word", false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse("f", []byte(c.text)); (err == nil) != c.ok {
				t.Error(err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/invalid/*.yaml", "../../examples/policies/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	keys := testKeys(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, err := Parse("f", data)
		if err != nil && (docs != nil || err.Error() == "") {
			t.Fatalf("documents beside an error, or no text: %v", err)
		}
		for _, doc := range docs {
			key, msg, err := Encode(OriginFile, doc, keys, nil)
			if err != nil {
				t.Fatalf("a valid document cannot be published: %v", err)
			}
			if _, err := Decode(key, 3, msg); err != nil {
				t.Fatalf("a published document cannot be read: %v\n%s", err, msg.GetDocument())
			}
			text, err := Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse("f", text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if second, _ := Marshal(again[0]); !bytes.Equal(second, text) {
				t.Fatalf("not canonical:\n%s\n%s", text, second)
			}
		}
	})
}

// withClients returns a document in which an alias repeats a list of 1000 clients.
func withClients(client string, times int) []byte {
	return []byte(strings.Replace(small, "window: 1s}]", "window: 1s}], overrides: [{unlimited: true, clients: &c ["+
		strings.Repeat(client+", ", 1000)+"]}, "+strings.Repeat("{unlimited: true, clients: *c}, ", times)+"]", 1))
}

func TestTooManyValuesAreSaidOnce(t *testing.T) {
	_, err := Parse("f", withClients("{}", 200))
	var list Errors
	if !errors.As(err, &list) || len(list) != 1 || !strings.Contains(list[0].Reason, "too many values") {
		t.Error(err)
	}
}

func TestErrorsAreBounded(t *testing.T) {
	_, err := Parse("f", withClients("{}", 2))
	var list Errors
	if !errors.As(err, &list) || len(list) != maxErrors+1 || !strings.HasSuffix(err.Error(), " more errors") {
		t.Errorf("%d errors", len(list))
	}
}
