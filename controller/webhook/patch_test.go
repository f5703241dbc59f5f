package webhook

import (
	"bytes"
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"pgregory.net/rapid"
)

// tree decodes as the handler does, with numbers as they are written.
func tree(t interface{ Fatal(...any) }, data []byte) map[string]any {
	o, err := decodeObject(data)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestAPatchHoldsWhatChangedAndNothingElse(t *testing.T) {
	for name, tt := range map[string]struct{ from, to, want string }{
		"nothing":            {`{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`, ``},
		"an item in front":   {`{"c":[{"name":"app","image":"a"}]}`, `{"c":[{"name":"w"},{"name":"app","image":"a"}]}`, `[{"op":"add","path":"/c/0","value":{"name":"w"}}]`},
		"an item at the end": {`{"c":[{"name":"app"}]}`, `{"c":[{"name":"app"},{"name":"w"}]}`, `[{"op":"add","path":"/c/1","value":{"name":"w"}}]`},
		"an item gone":       {`{"c":[{"name":"w"},{"name":"app"}]}`, `{"c":[{"name":"app"}]}`, `[{"op":"remove","path":"/c/0"}]`},
		"within an item":     {`{"c":[{"name":"app"}]}`, `{"c":[{"name":"app","m":[1]}]}`, `[{"op":"add","path":"/c/0/m","value":[1]}]`},
		"a slash in a key":   {`{"m":{}}`, `{"m":{"weirproxy.dev/a~b":"x"}}`, `[{"op":"add","path":"/m/weirproxy.dev~1a~0b","value":"x"}]`},
		"null is a value":    {`{}`, `{"a":null}`, `[{"op":"add","path":"/a","value":null}]`},
		"two places change":  {`{"c":[{"name":"a"},{"name":"b"}]}`, `{"c":[{"name":"b"},{"name":"a"}]}`, `[{"op":"add","path":"/c/0","value":{"name":"b"}},{"op":"remove","path":"/c/2"}]`},
		"another number":     {`{"a":9007199254740993}`, `{"a":9007199254740992}`, `[{"op":"replace","path":"/a","value":9007199254740992}]`},
	} {
		got, err := patchFrom(tree(t, []byte(tt.from)), tree(t, []byte(tt.to)))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s (%v), want %s", name, got, err, tt.want)
		}
	}
}

// value draws JSON with few names and keys, so that lists have items in common.
func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 5
		if depth == 0 {
			kinds = 3
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.IntRange(0, 2).Draw(t, "number")
		case 1:
			return rapid.SampledFrom([]string{"", "a", "é"}).Draw(t, "text")
		case 2:
			return nil
		case 3:
			return rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "list")
		default:
			return object(depth-1).Draw(t, "object")
		}
	})
}

func object(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		o := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b/c", "~"}), value(depth), 0, 3).Draw(t, "fields")
		if rapid.Bool().Draw(t, "named") {
			o["name"] = rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name")
		}
		return o
	})
}

// The library is the one that kube-apiserver applies patches with.
func TestAPatchLeadsFromOneObjectToTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, _ := json.Marshal(object(3).Draw(t, "from"))
		to, _ := json.Marshal(object(3).Draw(t, "to"))
		patch, err := patchFrom(tree(t, from), tree(t, to))
		if err != nil {
			t.Fatal(err)
		}
		if patch == nil {
			patch = []byte("[]")
		}
		steps, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Fatal(err)
		}
		got, err := steps.Apply(from)
		if err != nil {
			t.Fatalf("%s on %s: %v", patch, from, err)
		}
		a, _ := json.Marshal(tree(t, got))
		b, _ := json.Marshal(tree(t, to))
		if !bytes.Equal(a, b) {
			t.Fatalf("%s\nand %s\ngive %s,\nwant %s", from, patch, a, b)
		}
	})
}
