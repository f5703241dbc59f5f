package wirev1

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite golden files")

func testKeys(t testing.TB) Keys {
	t.Helper()
	k, err := NewKeys(bytes.Repeat([]byte{7}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func goldenIdentities() []Identity {
	base := Identity{
		Target: "shop/Service/orders", Policy: "shop/orders", Limit: "each-client",
		Algorithm: SlidingWindow, WindowMillis: 1000,
		Dimensions: []Dimension{{Kind: DimClientRemoteAddress, Value: "10.1.2.3/32"}},
	}
	with := func(f func(*Identity)) Identity {
		i := base
		f(&i)
		return i
	}
	return []Identity{
		base,
		with(func(i *Identity) { i.Dimensions = nil }),
		with(func(i *Identity) { i.Dimensions = []Dimension{{Kind: DimClientMissing}} }),
		with(func(i *Identity) { i.Dimensions = []Dimension{{Kind: DimClientHeader, Name: "x-tenant", Value: ""}} }),
		with(func(i *Identity) {
			i.Dimensions = []Dimension{{Kind: DimClientHeader, Name: "x-tenant", Value: "\xff\x00"}}
		}),
		with(func(i *Identity) { i.Algorithm = TokenBucket }),
		with(func(i *Identity) { i.WindowMillis = 60000 }),
		with(func(i *Identity) {
			i.Algorithm, i.WindowMillis, i.Period, i.TimeZone = Calendar, 0, Day, "Asia/Singapore"
		}),
		with(func(i *Identity) { i.Dimensions = []Dimension{{Kind: DimOverflow}} }),
		with(func(i *Identity) {
			i.Dimensions = append(i.Dimensions, Dimension{Kind: DimEndpoint, Value: "POST /orders/{id}"})
		}),
	}
}

// The bytes, ids and placements that every pod and every owner of version 1 must agree on.
func TestGoldenIdentity(t *testing.T) {
	type row struct{ Encoding, ID, Secret string }
	keys, got := testKeys(t), []row{}
	for _, i := range goldenIdentities() {
		b := i.Append(nil)
		got = append(got, row{
			hex.EncodeToString(b), keys.ID(b).String(),
			string(keys.AppendSecret(nil, DimClientHeader, "x-api-key", b)),
		})
	}
	golden(t, "identity.json", got)
}

func TestGoldenPartition(t *testing.T) {
	got := map[string][]int32{}
	for _, target := range []string{"", "shop/Service/orders", "shop/Deployment/orders", "a/b/c"} {
		for _, p := range []int32{1, 8, 16, 1000} {
			got[target] = append(got[target], Partition(target, p))
		}
	}
	golden(t, "partition.json", got)
}

func golden(t *testing.T, name string, v any) {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, want) {
		t.Errorf("%s differs (go test -update rewrites it; on the wire it may never change):\n%s", path, b)
	}
}

func anyIdentity(t *rapid.T) Identity {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a", "a/b", "\x00"}))
	i := Identity{
		Target: text.Draw(t, "target"), Policy: text.Draw(t, "policy"), Limit: text.Draw(t, "limit"),
		Algorithm: SlidingWindow, WindowMillis: rapid.Uint64Range(1, 1<<40).Draw(t, "window"),
	}
	if rapid.Bool().Draw(t, "calendar") {
		i.Algorithm, i.WindowMillis, i.Period, i.TimeZone = Calendar, 0, Day, "UTC"
	}
	for range rapid.IntRange(0, 3).Draw(t, "dimensions") {
		i.Dimensions = append(i.Dimensions, Dimension{
			Kind: DimensionKind(rapid.IntRange(1, int(lastKind)).Draw(t, "kind")),
			Name: text.Draw(t, "name"), Value: string(rapid.SliceOf(rapid.Byte()).Draw(t, "value")),
		})
	}
	return i
}

// Two identities have one encoding, and so one counter, only if they are equal.
func TestIdentityIsInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anyIdentity(t)
		b := a.Append(nil)
		got, err := DecodeIdentity(b)
		if err != nil {
			t.Fatalf("decode of what was encoded: %v", err)
		}
		if again := got.Append(nil); !bytes.Equal(again, b) {
			t.Fatalf("decode(encode(x)) encodes to other bytes\n%x\n%x", b, again)
		}
	})
}

func FuzzDecodeIdentity(f *testing.F) {
	for _, i := range goldenIdentities() {
		f.Add(i.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := DecodeIdentity(b)
		if err != nil {
			return
		}
		if again := i.Append(nil); !bytes.Equal(again, b) {
			t.Fatalf("accepted %x, which encodes as %x", b, again)
		}
	})
}

func TestIDDoesNotAllocate(t *testing.T) {
	keys, i := testKeys(t), goldenIdentities()[0]
	buf := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() {
		b := i.AppendPrefix(buf[:0], 1)
		b = AppendDimension(b, DimClientHeader, "x-tenant", "acme")
		_ = keys.ID(b)
		_ = keys.AppendSecret(b, DimClientHeader, "x-tenant", b)
	}); n != 0 {
		t.Errorf("%v allocations a counter id, want 0", n)
	}
}

func TestKeysDiffer(t *testing.T) {
	a := testKeys(t)
	b, err := NewKeys(bytes.Repeat([]byte{8}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	enc := goldenIdentities()[0]
	if a.ID(enc.Append(nil)) == b.ID(enc.Append(nil)) || a.Fingerprint() == b.Fingerprint() {
		t.Error("two identity keys give the same ids")
	}
	if err := a.Check(b.Fingerprint()); err == nil {
		t.Error("another key's fingerprint is accepted")
	}
	if _, err := NewKeys(make([]byte, 31)); err == nil {
		t.Error("a short key is accepted")
	}
}
