package policy

import (
	"bytes"
	"testing"

	"github.com/weirproxy/weir/api/v1alpha1"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

func testKeys(tb testing.TB) wirev1.Keys {
	tb.Helper()
	keys, err := wirev1.NewKeys(bytes.Repeat([]byte{7}, wirev1.KeySize))
	if err != nil {
		tb.Fatal(err)
	}
	return keys
}

// mustParse returns the one document of a text.
func mustParse(tb testing.TB, text string) *v1alpha1.QuotaPolicy {
	tb.Helper()
	docs, err := Parse("test", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	if len(docs) != 1 {
		tb.Fatalf("%d documents", len(docs))
	}
	return docs[0]
}

// publish compiles a text as a sidecar or aggregator gets it: through the policy topic's form.
func publish(tb testing.TB, origin string, version int64, text string) *Policy {
	tb.Helper()
	key, msg, err := Encode(origin, mustParse(tb, text), testKeys(tb), nil)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := Decode(key, version, msg)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
