package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

func TestOriginsInOrderOfPrecedence(t *testing.T) {
	kube, file, cli := publish(t, OriginKube, 1, small), publish(t, OriginFile, 9, small), publish(t, OriginCLI, 5, small)
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.Permutation([]*Policy{kube, file, cli}).Draw(t, "order")
		given = given[:rapid.IntRange(1, 3).Draw(t, "how many")]
		s := NewSet(given)
		want := given[0]
		for _, p := range []*Policy{cli, file, kube} {
			if slices.Contains(given, p) {
				want = p
			}
		}
		if got := s.Lookup("default/small"); got != want {
			t.Fatalf("%s in force, want %s", got.Key, want.Key)
		}
		if len(s.Policies()) != 1 || len(s.ForTarget("default/Service/small")) != 1 {
			t.Fatal("more than one in force")
		}
		if conflicts := s.Conflicts(); len(given) == 1 && len(conflicts) > 0 || len(given) > 1 && (len(conflicts) != 1 ||
			conflicts[0].InForce != want.Key || len(conflicts[0].Ignored) != len(given)-1) {
			t.Fatalf("conflicts of %d: %+v", len(given), conflicts)
		}
	})
}

func TestTheNewestVersionOfAKeyCounts(t *testing.T) {
	s := NewSet([]*Policy{publish(t, OriginFile, 3, small), publish(t, OriginFile, 8, small)})
	if v := s.Lookup("default/small").Version; v != 8 || len(s.Conflicts()) > 0 {
		t.Error(v, s.Conflicts())
	}
}

func TestNoSetHasNoPolicy(t *testing.T) {
	var s *Set
	if s.Lookup("a/b") != nil || s.Policies() != nil || s.Conflicts() != nil || s.ForTargets("a/b/c") != nil {
		t.Error("a nil set holds something")
	}
	if _, ok := s.Resolve(wirev1.Identity{}); ok {
		t.Error("a nil set resolves")
	}
}

func identity() wirev1.Identity {
	return wirev1.Identity{
		Target: "shop/Service/a", Policy: "shop/o", Limit: "each", Algorithm: wirev1.SlidingWindow, WindowMillis: 60_000,
		Dimensions: []wirev1.Dimension{{Kind: wirev1.DimClientMissing}, {Kind: wirev1.DimMethod, Value: "GET"}},
	}
}

func TestResolve(t *testing.T) {
	p := publish(t, OriginFile, 5, withOverrides)
	s := NewSet([]*Policy{p, publish(t, OriginFile, 6, small)})
	got, ok := s.Resolve(identity())
	if !ok || got.Policy != p || got.Limit.Name != "each" || got.Rate.Index != 1 || got.Rule.Limit != 100 || got.Unlimited {
		t.Fatalf("%+v, %v", got, ok)
	}
	if got.Rule.PolicyVersion != 5 || got.Rule.Algorithm != quota.SlidingWindow {
		t.Errorf("%+v", got.Rule)
	}
	with := func(change func(*wirev1.Identity)) wirev1.Identity {
		id := identity()
		change(&id)
		return id
	}
	if r, ok := s.Resolve(with(func(id *wirev1.Identity) { id.Dimensions[0] = key(t, "acme") })); !ok || r.Rule.Limit != 200 {
		t.Errorf("override: %+v, %v", r, ok)
	}
	if r, ok := s.Resolve(with(func(id *wirev1.Identity) { id.Dimensions[0] = key(t, "acme"); id.WindowMillis = 1000 })); !ok || !r.Unlimited || r.Rule != nil {
		t.Errorf("unlimited: %+v, %v", r, ok)
	}
	if r, ok := s.Resolve(with(func(id *wirev1.Identity) { id.Dimensions = []wirev1.Dimension{{Kind: wirev1.DimOverflow}} })); !ok || r.Rule.Limit != 100 {
		t.Errorf("overflow: %+v, %v", r, ok)
	}
	for name, id := range map[string]wirev1.Identity{
		"policy":        with(func(id *wirev1.Identity) { id.Policy = "shop/other" }),
		"target":        with(func(id *wirev1.Identity) { id.Target = "shop/Service/c" }),
		"limit":         with(func(id *wirev1.Identity) { id.Limit = "other" }),
		"window":        with(func(id *wirev1.Identity) { id.WindowMillis = 2000 }),
		"algorithm":     with(func(id *wirev1.Identity) { id.Algorithm = wirev1.TokenBucket }),
		"no dimensions": with(func(id *wirev1.Identity) { id.Dimensions = nil }),
		"order":         with(func(id *wirev1.Identity) { slices.Reverse(id.Dimensions) }),
		"other kinds":   with(func(id *wirev1.Identity) { id.Dimensions[1].Kind = wirev1.DimHost }),
	} {
		if r, ok := s.Resolve(id); ok {
			t.Errorf("another %s resolves to %+v", name, r)
		}
	}
}

// Raising or lowering a limit changes no counter's identity: counts are kept (the amount is not in it).
func TestCase03AmountIsNotPartOfTheIdentity(t *testing.T) {
	before := publish(t, OriginFile, 5, withOverrides)
	after := publish(t, OriginFile, 6, strings.NewReplacer("limit: 10,", "limit: 7777,", "limit: 200,", "limit: 3,").Replace(withOverrides))
	for i, r := range before.Limits[0].Rates {
		if got, want := fmt.Sprint(after.Limits[0].Rates[i].Identity), fmt.Sprint(r.Identity); got != want {
			t.Errorf("%s, before %s", got, want)
		}
	}
	if got := after.Limits[0].Rates[0].Rule.Limit; got != 7777 {
		t.Error(got)
	}
}

func TestTargets(t *testing.T) {
	labels := map[string]string{"app": "orders", "tier": "web"}
	for _, c := range []struct {
		target Target
		want   bool
	}{
		{Target{Name: "shop/Deployment/orders"}, true},
		{Target{Name: "shop/Deployment/other"}, false},
		{Target{Name: "other/Deployment/orders"}, false},
		{Target{Name: "shop/Service/orders"}, false},
		{Target{Name: "shop/Service/orders", Selector: map[string]string{"app": "orders"}}, true},
		{Target{Name: "other/Service/orders", Selector: map[string]string{"app": "orders"}}, false},
		{Target{Name: "shop/Service/orders", Selector: map[string]string{"app": "orders", "tier": "db"}}, false},
		{Target{Name: "shop/Service/orders", Selector: map[string]string{"zone": ""}}, false},
		{Target{Name: "shop/Service/orders", Selector: map[string]string{}}, false},
	} {
		if got := c.target.Matches("shop", "Deployment", "orders", labels); got != c.want {
			t.Errorf("%+v: %v", c.target, got)
		}
	}
}
