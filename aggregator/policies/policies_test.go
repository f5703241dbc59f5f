package policies

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/policytopic"
)

func keys(t *testing.T) wirev1.Keys {
	k, err := wirev1.NewKeys(make([]byte, wirev1.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func document(name, limit string) string {
	return `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: ` + name + `, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: orders}]
  client: [{source: Header, name: x-api-key}]
  limits:
  - name: all
    counters: [Client]
    rates: [{limit: ` + limit + `, window: 1s}]
    overrides: [{clients: [{source: Header, name: x-api-key, value: hunter2}], unlimited: true}]
`
}

func recordOf(t *testing.T, origin, name, limit string) policytopic.Record {
	t.Helper()
	docs, err := policy.Parse(name, []byte(document(name, limit)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := policytopic.NewRecord(policytopic.Source{Origin: origin, Document: docs[0]}, keys(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func message(offset int64, r policytopic.Record) bus.Message {
	return bus.Message{Topic: "weir.policies", Offset: offset, Key: []byte(r.Key.String()), Value: r.Value}
}

// A bad version keeps the last good one in force; a tombstone ends both.
func TestBookKeepsTheLastGoodVersion(t *testing.T) {
	b := NewBook()
	good := recordOf(t, "cli", "orders", "5")
	if changed, err := b.Apply(message(3, good)); !changed || err != nil {
		t.Fatal(changed, err)
	}
	bad := good
	bad.Value = []byte("garbage")
	if changed, err := b.Apply(message(4, bad)); changed || err == nil {
		t.Errorf("a bad version: changed %v, error %v", changed, err)
	}
	if p := b.Set().Lookup("shop/orders"); p == nil || p.Version != 3 {
		t.Errorf("in force is %+v, want version 3", p)
	}
	if p := b.Problems(); len(p) != 1 || p[0].Version != 4 {
		t.Errorf("problems %v", p)
	}
	if _, err := b.Apply(message(5, good)); err != nil || len(b.Problems()) != 0 || b.Set().Lookup("shop/orders").Version != 5 {
		t.Errorf("a good version after a bad one: %v, %v", err, b.Problems())
	}
	if changed, err := b.Apply(message(6, policytopic.Record{Key: good.Key})); !changed || err != nil || b.Set().Lookup("shop/orders") != nil {
		t.Errorf("a tombstone: changed %v, error %v", changed, err)
	}
	if _, err := b.Apply(bus.Message{Key: []byte("nonsense"), Value: []byte{1}}); err == nil {
		t.Error("a strange key is no error")
	}
}

// plans writes files, plans against what the book holds, and applies the plan.
type plans struct {
	t    *testing.T
	dir  string
	book *Book
	next int64
}

func (p *plans) write(name, text string) {
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plans) publish() (published []string, bad int) {
	p.t.Helper()
	files, err := readDir(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	parsed := parseFiles(files, keys(p.t))
	for _, r := range plan(parsed, p.book.hashes(policy.OriginFile)) {
		p.next++
		if _, err := p.book.Apply(message(p.next, r)); err != nil {
			p.t.Fatal(err)
		}
		sign := "+"
		if r.Value == nil {
			sign = "-"
		}
		published = append(published, sign+r.Key.Name)
	}
	return published, len(parsed.errs)
}

func (p *plans) expect(what string, bad int, want ...string) {
	p.t.Helper()
	got, n := p.publish()
	if !slices.Equal(got, want) || n != bad {
		p.t.Errorf("%s: published %v with %d bad files, want %v with %d", what, got, n, want, bad)
	}
}

func TestDirectory(t *testing.T) {
	p := &plans{t: t, dir: t.TempDir(), book: NewBook()}
	cli := recordOf(t, policy.OriginCLI, "mine", "3")
	if _, err := p.book.Apply(message(0, cli)); err != nil {
		t.Fatal(err)
	}
	p.write("a.yaml", document("a", "5")+"---\n"+document("b", "5"))
	p.write("c.yml", document("c", "5"))
	p.write("notes.txt", "not a policy")
	p.write(".hidden.yaml", "{")
	p.expect("new files", 0, "+a", "+b", "+c")
	p.expect("nothing changed", 0)
	p.write("c.yml", document("c", "6"))
	p.expect("an edit", 0, "+c")
	p.write("c.yml", document("c", "-6"))
	p.expect("a bad edit keeps what was", 1)
	p.write("a.yaml", document("a", "5"))
	p.expect("no deletion while a file is bad", 1)
	p.write("c.yml", document("c", "6"))
	p.expect("the file is good again", 0, "-b")
	p.write("d.yaml", document("a", "9"))
	p.expect("the same policy in two files", 1)
	for _, f := range []string{"a.yaml", "c.yml", "d.yaml"} {
		if err := os.Remove(filepath.Join(p.dir, f)); err != nil {
			t.Fatal(err)
		}
	}
	p.expect("all files are gone", 0, "-a", "-c")
	if p.book.Set().Lookup("shop/mine") == nil {
		t.Error("a policy of another origin is gone")
	}
}
