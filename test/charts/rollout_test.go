package charts

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A setting starts those pods anew that read it, once, and no others; the injector's settings are read again by themselves.
func TestAChangeStartsWhatReadsIt(t *testing.T) {
	hashes := func(change func(map[string]any)) map[string]string {
		values, err := Values("minimal")
		if err != nil {
			t.Fatal(err)
		}
		change(values)
		files, err := Render(values, sets["minimal"])
		if err != nil {
			t.Fatal(err)
		}
		list, err := files.Objects()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, o := range list {
			switch o.GetKind() {
			case "StatefulSet", "Deployment":
				out[o.GetKind()], _, _ = unstructured.NestedString(o.Object, "spec", "template", "metadata", "annotations", "weirproxy.dev/config-hash")
			case "Job":
				out["Job"] = o.GetName()
			}
		}
		return out
	}
	before := hashes(func(map[string]any) {})
	for name, tt := range map[string]struct {
		change func(map[string]any)
		want   []string
	}{
		"nothing":                {func(map[string]any) {}, nil},
		"a broker":               {func(v map[string]any) { v["kafka"].(map[string]any)["brokers"] = []any{"other:9092"} }, []string{"StatefulSet", "Deployment", "Job"}},
		"Redis":                  {func(v map[string]any) { v["redis"].(map[string]any)["addresses"] = []any{"other:6379"} }, []string{"StatefulSet"}},
		"partitions":             {func(v map[string]any) { v["topics"] = map[string]any{"partitions": 9} }, []string{"StatefulSet", "Job"}},
		"the topics' rights":     {func(v map[string]any) { v["topics"] = map[string]any{"acls": map[string]any{"enabled": true}} }, []string{"Job"}},
		"watched namespaces":     {func(v map[string]any) { v["controller"] = map[string]any{"watchNamespaces": []any{"shop"}} }, []string{"Deployment"}},
		"the injector's setting": {func(v map[string]any) { v["sidecar"] = map[string]any{"logLevel": "debug"} }, nil},
	} {
		after := hashes(tt.change)
		for _, kind := range []string{"StatefulSet", "Deployment", "Job"} {
			changed := after[kind] != before[kind]
			want := false
			for _, w := range tt.want {
				want = want || w == kind
			}
			if changed != want || after[kind] == "" {
				t.Errorf("%s: %s changed: %v, want %v", name, kind, changed, want)
			}
		}
	}
}
