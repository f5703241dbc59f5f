package crd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/api/v1alpha1/kube"
	"github.com/weirproxy/weir/internal/policy"
)

func load(t *testing.T) (*Schema, *Table) {
	t.Helper()
	s, err := LoadSchema(t.Context(), File)
	if err != nil {
		t.Fatal(err)
	}
	table, err := LoadTable()
	if err != nil {
		t.Fatal(err)
	}
	return s, table
}

func document(t *testing.T, table *Table, r *Row) map[string]any {
	t.Helper()
	doc, err := table.Document(r, "row")
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// parse reads a document as a file.
func parse(t *testing.T, doc map[string]any) (*v1alpha1.QuotaPolicy, error) {
	t.Helper()
	text, err := yaml.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := policy.Parse("row", text)
	if err != nil {
		return nil, err
	}
	return docs[0], nil
}

// A resource and a file are judged alike: what kube-apiserver refuses, Go refuses, and what only Go
// refuses is listed as such.
func TestResourceAndFileAgree(t *testing.T) {
	s, table := load(t)
	for i := range table.Rows {
		r := &table.Rows[i]
		t.Run(r.Name, func(t *testing.T) {
			got := s.Refusal(t.Context(), document(t, table, r))
			if (got != "") != (r.Refused != "") || !strings.Contains(got, r.Refused) {
				t.Errorf("kube-apiserver: %q, want %q", got, r.Refused)
			}
			_, err := parse(t, document(t, table, r))
			if (err != nil) != (r.Refused != "" || r.Invalid != "") {
				t.Errorf("Go: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), r.Invalid) {
				t.Errorf("Go: %v, want %q", err, r.Invalid)
			}
		})
	}
}

// What the controller reads from kube-apiserver, defaults filled in, is valid where the file is, and
// compiles to the same.
func TestDefaultsChangeNothing(t *testing.T) {
	s, table := load(t)
	for i := range table.Rows {
		r := &table.Rows[i]
		if r.Refused != "" {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			stored := document(t, table, r)
			s.Default(stored)
			doc := decode(t, stored).Document()
			if errs := policy.Validate(doc); (len(errs) > 0) != (r.Invalid != "") {
				t.Fatalf("with defaults: %v", errs)
			}
			if r.Invalid != "" {
				return
			}
			file, err := parse(t, document(t, table, r))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := compile(t, doc), compile(t, file); !reflect.DeepEqual(got, want) {
				t.Errorf("with defaults %+v\nas written  %+v", got, want)
			}
		})
	}
}

func decode(t *testing.T, obj map[string]any) *kube.QuotaPolicy {
	t.Helper()
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	p := &kube.QuotaPolicy{}
	if err := json.Unmarshal(text, p); err != nil {
		t.Fatal(err)
	}
	return p
}

func compile(t *testing.T, doc *v1alpha1.QuotaPolicy) *policy.Policy {
	t.Helper()
	p, err := policy.Compile(policy.Key{Origin: "kube", Namespace: "default", Name: doc.Metadata.Name}, 1, doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The least document comes back with what weir does by default, so that kubectl shows it.
func TestDefaultsAreShown(t *testing.T) {
	s, table := load(t)
	doc, err := table.Document(&Row{}, "least")
	if err != nil {
		t.Fatal(err)
	}
	s.Default(doc)
	text, err := yaml.Marshal(doc["spec"])
	if err != nil {
		t.Fatal(err)
	}
	const want = `exclude:
- CORSPreflight
failure:
  mode: LocalShare
  staleAfter: 500ms
limits:
- accuracy: Normal
  enforcePercent: 100
  mode: Enforce
  name: all
  overcommit: Learned
  rates:
  - algorithm: SlidingWindow
    limit: 5
    window: 1s
response:
  headers: IETF
  status: 429
targetRefs:
- kind: Service
  name: orders
unknownClients: Shared
`
	if string(text) != want {
		t.Errorf("got\n%s", text)
	}
}

// Every rule of the definition is met by an accepted row, and broken by a refused one.
func TestEveryRuleAcceptsAndRefuses(t *testing.T) {
	s, table := load(t)
	accepted, refused := make(map[string]bool), make(map[string]bool)
	for i := range table.Rows {
		r := &table.Rows[i]
		doc := document(t, table, r)
		if said := s.Refusal(t.Context(), doc); said != "" {
			for m := range rules(s) {
				refused[m] = refused[m] || strings.Contains(said, m)
			}
			continue
		}
		s.visit(doc, func(message string) { accepted[message] = true })
	}
	all := rules(s)
	if len(all) < 25 {
		t.Fatalf("only %d rules found", len(all))
	}
	for message := range all {
		if !accepted[message] || !refused[message] {
			t.Errorf("%q: met by an accepted row: %v, broken by a refused one: %v", message, accepted[message], refused[message])
		}
	}
}

// The example policies apply as they are.
func TestExamplesAreAccepted(t *testing.T) {
	s, _ := load(t)
	files, err := filepath.Glob("../../../examples/policies/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		docs, err := policy.Parse(f, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range docs {
			text, err := policy.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			var obj map[string]any
			if err := utiljson.Unmarshal(text, &obj); err != nil {
				t.Fatal(err)
			}
			if said := s.Refusal(t.Context(), obj); said != "" {
				t.Errorf("%s: %s", d.Metadata.Name, said)
			}
		}
	}
}
