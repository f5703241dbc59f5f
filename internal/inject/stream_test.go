package inject

import (
	"bytes"
	"strings"
	"testing"
)

func TestAnErrorNamesDocumentObjectAndRemedyAndNothingIsWritten(t *testing.T) {
	good := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n# nothing\n---\n"
	for in, want := range map[string]string{
		"apiVersion: v1\nkind: [\n": "document 2: no YAML",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}, spec: {}}":                                     "document 2: Deployment shop/a: spec.template is missing",
		"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: 7}]}}":                                           "document 2: Pod a: this is no pod",
		"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: {}}}":                                                    "see kubectl explain pod.spec",
		"{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {weirproxy.dev/listen: x}}, spec: {containers: [{name: a}]}}":   "document 2: Pod a: annotation weirproxy.dev/listen",
		"{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {a: 'x,y=z'}}, spec: {containers: [{name: a}]}}":                     `label a="x,y=z"`,
		"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a}], containers: [{name: b}]}}":                  `"containers" already set`,
		"{apiVersion: v1, kind: List, items: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: text}}]}": "document 2, item 1: Deployment a: spec.template",
	} {
		out, _, err := engine(t, nil).Stream([]byte(good+in), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
		if out != nil {
			t.Errorf("%s: something is written all the same", in)
		}
	}
}

func TestAllErrorsOfAStreamAreTold(t *testing.T) {
	_, _, err := engine(t, nil).Stream([]byte("a: [\n---\nb: [\n"), Options{})
	if err == nil || !strings.Contains(err.Error(), "document 1") || !strings.Contains(err.Error(), "document 2") {
		t.Errorf("%v", err)
	}
}

// What is no pod goes through byte for byte, whatever it looks like.
func TestEverythingElsePassesByteForByte(t *testing.T) {
	for _, in := range []string{
		"", "\n", "---\n", "# only a comment", "\ufeffa: 1\r\n---\r\nb: 2\r\n",
		"a: &x {b: 1}\nc: *x\n", "a: |\n  --- no mark\n   text\n", "--- !custom\na: 1\n...\n# end",
		"a: 1\na: 2\n", "--- [1, 2]\n--- text\n", "{\"a\": 1}\n{\"b\":\t2}", "{not: json}\n", "{\"a\": 1} trailing: {",
		"kind: Deployment\nspec: {template: 1}\n", "\"text\"\n", "%YAML 1.2\n---\na: 1\n",
	} {
		out, _, err := engine(t, nil).Stream([]byte(in), Options{})
		if err == nil && string(out) != in {
			t.Errorf("%q became %q", in, out)
		}
		if err != nil && !strings.Contains(in, "trailing") {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzStream(f *testing.F) {
	for name := range cases() {
		t := &testing.T{}
		in, _ := inputOf(t, name)
		f.Add(in)
	}
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[null,{"name":"a","volumeMounts":null}],"volumes":[null],"securityContext":null}}`))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [null, 1, {apiVersion: v1, kind: List, items: {}}]\n"))
	e, err := New(settings())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out, report, err := e.Stream(in, Options{})
		if err != nil {
			return
		}
		changed := false
		for _, entry := range report {
			changed = changed || entry.Action.Changed()
		}
		if !changed && !bytes.Equal(in, out) {
			t.Fatalf("nothing is said to be changed, but %q became %q", in, out)
		}
		again, _, err := e.Stream(out, Options{})
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("a second injection (%v) of\n%s\nmade\n%s", err, out, again)
		}
		if _, _, err := UninjectStream(out); err != nil {
			t.Fatal(err)
		}
	})
}

const aPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a"}]}}`

// What the conversion would not see must not be lost.
func TestNothingThatFollowsADocumentIsLost(t *testing.T) {
	utf16 := "\xff\xfe"
	for _, c := range aPod + "\n---\na: 1\n" {
		utf16 += string([]byte{byte(c), 0})
	}
	for name, tt := range map[string]struct{ in, want string }{
		"UTF-16":                {utf16, "UTF-8"},
		"a note between":        {aPod + "\n# note\n{\"kind\":\"Service\"}\n", "something follows"},
		"another language":      {aPod + "\n{flow: yaml}\n", "something follows"},
		"after a mark":          {"\ufeff" + aPod + "\n" + aPod, "something follows"},
		"lone carriage returns": {"apiVersion: v1\rkind: Pod\rmetadata: {name: a}\rspec: {containers: [{name: a}]}\r---\ra: 1\r", "something follows"},
		"a key twice":           {strings.Replace(aPod, `"spec"`, `"spec":{},"spec"`, 1), `"spec" already set`},
	} {
		out, _, err := engine(t, nil).Stream([]byte(tt.in), Options{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || out != nil {
			t.Errorf("%s: %v, want %q; out %q", name, err, tt.want, out)
		}
	}
}

// A document in the line of its mark stays one.
func TestADocumentInTheLineOfItsMark(t *testing.T) {
	in := "a: 1\n--- " + aPod + "\n---\nb: 2\n"
	once, _, err := engine(t, nil).Stream([]byte(in), Options{})
	if err != nil || !bytes.HasPrefix(once, []byte("a: 1\n---\n{\n")) || !bytes.HasSuffix(once, []byte("}\n---\nb: 2\n")) {
		t.Fatalf("%v\n%s", err, once)
	}
	twice, _, err := engine(t, nil).Stream(once, Options{})
	if err != nil || !bytes.Equal(once, twice) {
		t.Errorf("a second time: %v\n%s", err, twice)
	}
}
