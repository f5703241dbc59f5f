package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// serverOf serves HTTPRoute in these versions.
type serverOf struct {
	versions []string
	fails    error
	asked    int
}

func (s *serverOf) ServerGroups() (*metav1.APIGroupList, error) {
	s.asked++
	g := metav1.APIGroup{Name: gatewayGroup}
	for _, v := range s.versions {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{Version: v})
	}
	return &metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "other"}, g}}, s.fails
}

func (s *serverOf) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	if _, version, _ := strings.Cut(gv, "/"); !slices.Contains(s.versions, version) {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Kind: "HTTPRoute"}}}, nil
}

// looks is an optional and what it did, at a time of its own.
type looks struct {
	*optional
	t       *testing.T
	clock   time.Time
	watches []string
}

func newLooks(t *testing.T, s *serverOf) *looks {
	l := &looks{t: t, clock: time.Unix(0, 0)}
	note := func(what string) func(schema.GroupVersionKind) error {
		return func(gvk schema.GroupVersionKind) error { l.watches = append(l.watches, what+gvk.Version); return nil }
	}
	l.optional = newOptional(s, note("+"), note("-"))
	l.now = func() time.Time { return l.clock }
	return l
}

var httpRoute = schema.GroupKind{Group: gatewayGroup, Kind: "HTTPRoute"}

// ask returns the version served, "" for none.
func (l *looks) ask() string {
	l.t.Helper()
	k, err := l.Served(l.t.Context(), httpRoute)
	if err != nil {
		l.t.Fatal(err)
	}
	if (k.missing == "") == k.gvk.Empty() {
		l.t.Errorf("%+v", k)
	}
	return k.gvk.Version
}

func TestOptionalKindsAreLookedForNowAndThenAndWatchedOnce(t *testing.T) {
	s := &serverOf{}
	l := newLooks(t, s)
	if first, second := l.ask(), l.ask(); first+second != "" || s.asked != 1 {
		t.Errorf("asked %d times for a kind that is missing", s.asked)
	}
	s.versions = []string{"v1", "v1beta1"}
	l.clock = l.clock.Add(lookAgain)
	if first, second := l.ask(), l.ask(); first != "v1" || second != "v1" || s.asked != 2 || len(l.watches) != 1 {
		t.Errorf("watched %v, asked %d times", l.watches, s.asked)
	}
	l.clock = l.clock.Add(confirmEach)
	if s.fails = errors.New("no"); l.ask() != "v1" {
		t.Error("a kind that is watched went with kube-apiserver")
	}
	if _, err := l.Served(t.Context(), schema.GroupKind{Kind: "Other"}); err == nil {
		t.Error("an error was taken for an answer")
	}
}

// A version that is served no more would be listed in vain for ever.
func TestAKindIsFollowedToAnotherVersion(t *testing.T) {
	s := &serverOf{versions: []string{"v1beta1"}}
	l := newLooks(t, s)
	got := []string{l.ask()}
	for _, versions := range [][]string{{"v1", "v1beta1"}, {"v1"}, nil, {"v1"}} {
		s.versions = versions
		l.clock = l.clock.Add(confirmEach)
		got = append(got, l.ask())
	}
	if !slices.Equal(got, []string{"v1beta1", "v1beta1", "v1", "", "v1"}) ||
		!slices.Equal(l.watches, []string{"+v1beta1", "+v1", "-v1beta1", "-v1", "+v1"}) {
		t.Errorf("read in %q, watches %q", got, l.watches)
	}
}

// A list that does not come holds a look up for a while the first time, and hardly at all again.
func TestALateListIsWaitedForOnce(t *testing.T) {
	l := newLooks(t, &serverOf{versions: []string{"v1"}})
	patience := func() time.Duration {
		k, err := l.Served(t.Context(), httpRoute)
		if err != nil {
			t.Fatal(err)
		}
		return k.patience
	}
	first := patience()
	l.Late(httpRoute, true)
	second := patience()
	l.Late(httpRoute, false)
	if first != listPatience || second != latePatience || patience() != listPatience {
		t.Errorf("patience %v, %v", first, second)
	}
}

// A kind that kube-apiserver serves and does not list is a reason in the status, not a look that hangs.
func TestARouteThatCannotBeListedIsMissing(t *testing.T) {
	w := newWorld(t, policyOn("HTTPRoute/front"))
	w.served["HTTPRoute"] = true
	w.loop.resolver.kinds = impatient{w}
	w.loop.resolver.reader = silent{w.Client}
	if r := w.reconcile(orders); r.RequeueAfter != askedAgain {
		t.Errorf("looked at again after %v", r.RequeueAfter)
	}
	if got := fmt.Sprint(w.facts.Missing); !strings.Contains(got, "does not list HTTPRoute."+gatewayGroup) || !slices.Equal(w.late, []string{"HTTPRoute true"}) {
		t.Errorf("missing %v, late %v", got, w.late)
	}
}

type impatient struct{ *world }

func (i impatient) Served(ctx context.Context, gk schema.GroupKind) (served, error) {
	k, err := i.world.Served(ctx, gk)
	k.patience = time.Millisecond
	return k, err
}

// silent is a cache whose list of metadata does not come.
type silent struct{ client.Client }

func (s silent) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, is := o.(*metav1.PartialObjectMetadata); is {
		<-ctx.Done()
		return apierrors.NewTimeoutError("the cache has not synced", 0)
	}
	return s.Client.Get(ctx, key, o, opts...)
}
