package ledger

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// Counters of one limit share the beginning of their identities, and yet each has its own whole; once the last is
// freed nothing is counted any more.
func TestIdentitiesComeBackWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New(Config{})
		identity := rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 0, 12)
		made, longest := map[*Slot][]byte{}, 0
		for n := range uint64(rapid.IntRange(1, 40).Draw(t, "counters")) {
			k := Key{
				ID: wirev1.ID{Hi: 1, Lo: n + 1}, Identity: identity.Draw(t, "identity"),
				Limit: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "limit"), Overflow: rapid.Bool().Draw(t, "overflow"),
			}
			s := l.Make(k)
			if s.Limit != k.Limit || s.Overflow != k.Overflow {
				t.Fatalf("%+v became %+v", k, s.kind)
			}
			made[s] = k.Identity
			longest += len(k.Identity)
		}
		l.TakeMade(func(*Slot) {})
		for s, want := range made {
			if !bytes.Equal(s.Identity(), want) || s.IdentityLen() != len(want) {
				t.Fatalf("identity %q, want %q", s.Identity(), want)
			}
		}
		if _, size := l.Size(); size > 2*longest {
			t.Fatalf("%d bytes counted of %d", size, longest)
		}
		for s := range made {
			l.Remove(s)
		}
		for range 3 {
			l.Reclaim(always)
		}
		if slots, size := l.Size(); slots != 0 || size != 0 || len(l.alloc.families) != 0 {
			t.Fatalf("%d slots, %d bytes, %d families are left", slots, size, len(l.alloc.families))
		}
	})
}

// Counters of one limit under another amount are another family: both are right.
func TestAnotherAmountIsAnotherFamily(t *testing.T) {
	l := New(Config{})
	before, after := key(1), key(2)
	after.Rule = new(quota.Rule)
	if a, b := l.Make(before), l.Make(after); a.Rule != nil || b.Rule != after.Rule {
		t.Errorf("rules %p and %p", a.Rule, b.Rule)
	}
}
