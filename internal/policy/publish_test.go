package policy

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/api/v1alpha1"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

func TestPublishedFormIsGolden(t *testing.T) {
	_, msg, err := Encode(OriginFile, mustParse(t, withOverrides), testKeys(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "published.json", append(msg.GetDocument(), '\n'))
}

// A secret header's value is in no published byte, nor is an annotation that may hold the document.
func TestNoSecretIsPublished(t *testing.T) {
	secret := strings.NewReplacer("value: acme}, {source: Principal", "value: s3cr3t}, {source: Principal",
		"namespace: shop}", "namespace: shop, annotations: {last-applied: s3cr3t}}").Replace(withOverrides)
	doc := mustParse(t, secret)
	key, msg, err := Encode(OriginCLI, doc, testKeys(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	wire, err := proto.Marshal(msg)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(wire, []byte("s3cr3t")) {
		t.Errorf("published: %s", msg.GetDocument())
	}
	if text, _ := Marshal(doc); !bytes.Contains(text, []byte("s3cr3t")) {
		t.Error("the caller's document was changed")
	}
	if _, err := Decode(key, 1, msg); err != nil {
		t.Error(err)
	}
}

func TestRecordsThatAreRefused(t *testing.T) {
	key, good, err := Encode(OriginFile, mustParse(t, withOverrides), testKeys(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := Marshal(mustParse(t, withOverrides))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*wirev1.Policy)
		want   string
	}{
		"newer schema":       {func(m *wirev1.Policy) { m.SchemaVersion = 2 }, "upgrade"},
		"no schema":          {func(m *wirev1.Policy) { m.SchemaVersion = 0 }, "no schema version"},
		"another origin":     {func(m *wirev1.Policy) { m.Origin = OriginKube }, "record's document is kube/shop/o"},
		"empty":              {func(m *wirev1.Policy) { m.Document = nil }, "0 documents"},
		"two documents":      {func(m *wirev1.Policy) { m.Document = []byte(small + "---\n" + strings.Replace(small, "small", "b", 1)) }, "2 documents"},
		"invalid":            {func(m *wirev1.Policy) { m.Document = []byte(`{"kind": "QuotaPolicy"}`) }, "file/shop/o:1:1: metadata.name: is missing"},
		"a plain secret":     {func(m *wirev1.Policy) { m.Document = plain }, "plain value of a secret source"},
		"a strange selector": {func(m *wirev1.Policy) { m.Targets = []*wirev1.ResolvedTarget{{Target: "shop/Service/z"}} }, "not among"},
	} {
		m := proto.CloneOf(good)
		c.change(m)
		if p, err := Decode(key, 1, m); p != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), "acme") {
			t.Errorf("%s: the error holds the secret: %v", name, err)
		}
	}
}

func TestResolvedSelectorsArriveWithTheirTarget(t *testing.T) {
	key, msg, err := Encode(OriginKube, mustParse(t, withOverrides), testKeys(t), []*wirev1.ResolvedTarget{
		{Target: "shop/Service/a", Selector: []*wirev1.Label{{Key: "app", Value: "a"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Decode(key, 1, msg)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSet([]*Policy{p})
	if got := s.TargetsOf("shop", "Deployment", "x", map[string]string{"app": "a"}); len(got) != 1 || got[0] != "shop/Service/a" {
		t.Error(got)
	}
	if got := s.TargetsOf("shop", "Deployment", "b", nil); len(got) != 1 || got[0] != "shop/Deployment/b" {
		t.Error(got)
	}
}

func TestKeys(t *testing.T) {
	k := Key{OriginFile, "shop", "orders.v1"}
	if got, err := ParseKey(k.String()); err != nil || got != k {
		t.Error(got, err)
	}
	for _, bad := range []string{"", "file/a", "file/a/b/c", "other/a/b", "file/A/b", "file/a/", "installation"} {
		if _, err := ParseKey(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

// A document reads the same by encoding/json (as Kubernetes clients do) and by Parse.
func TestDocumentsReadTheSameByEncodingJSON(t *testing.T) {
	files, err := filepath.Glob("../../examples/policies/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text, err := Marshal(mustParse(t, string(data)))
		if err != nil {
			t.Fatal(err)
		}
		var doc v1alpha1.QuotaPolicy
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		if again, _ := Marshal(&doc); !bytes.Equal(again, text) {
			t.Errorf("%s:\n%s\n%s", f, text, again)
		}
		if errs := Validate(&doc); len(errs) > 0 {
			t.Error(errs)
		}
	}
}
