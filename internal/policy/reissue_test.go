package policy

import (
	"reflect"
	"testing"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// A document published again unchanged needs no compiling: the result is the same.
func TestReissuedIsWhatCompilingAgainGives(t *testing.T) {
	for _, text := range published(t) {
		doc := mustParse(t, string(text))
		key := Key{OriginFile, namespaceOf(doc), doc.Metadata.Name}
		msg := &wirev1.Policy{SchemaVersion: SchemaVersion, Origin: key.Origin, Namespace: key.Namespace, Name: key.Name, Document: text}
		compiled := func(version int64) *Policy {
			p, err := Decode(key, version, msg)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		p := compiled(7)
		if got, want := p.Reissued(9), compiled(9); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: reissued as %+v\nwant %+v", key, got, want)
		}
		if !reflect.DeepEqual(p, compiled(7)) {
			t.Errorf("%s: the policy itself has changed", key)
		}
		if p.Reissued(7) != p {
			t.Errorf("%s: copied for the same version", key)
		}
	}
}
