package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weirproxy/weir/controller/changes"
)

// What went while this process did not lead, or was left to be tried again when it stopped, nobody tells of.
func TestALeaderLooksAtAllWhenElectedAndNowAndThen(t *testing.T) {
	set := changes.NewSet(0)
	ctx, cancel := context.WithCancel(t.Context())
	tick := make(chan time.Time)
	ended := make(chan struct{})
	go func() { sweep(ctx, set, tick); close(ended) }()
	for range 2 {
		if b, err := set.Next(t.Context()); err != nil || !b.All {
			t.Fatalf("%+v, %v", b, err)
		}
		tick <- time.Time{}
	}
	cancel()
	<-ended
}

// A policy that something happened to is looked at before the many of which nothing is known.
func TestWhatChangedGoesBeforeASweep(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	a, b, c := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}, types.NamespacedName{Name: "c"}
	add(q, []types.NamespacedName{a, b}, true)
	add(q, []types.NamespacedName{c}, false)
	var got []string
	for range 3 {
		r, _ := q.Get()
		got = append(got, r.Name)
	}
	if slices.Sort(got[1:]); !slices.Equal(got, []string{"c", "a", "b"}) {
		t.Errorf("looked at %v", got)
	}
}

// Workers start a moment before the process is told that it leads; a write in it would be refused.
func TestNothingIsLookedAtBeforeTheElection(t *testing.T) {
	since := make(chan struct{})
	looked := 0
	e := elected{since, reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		looked++
		return reconcile.Result{}, nil
	})}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Reconcile(ctx, reconcile.Request{}); !errors.Is(err, context.Canceled) || looked != 0 {
		t.Errorf("%v, looked %d times", err, looked)
	}
	close(since)
	if _, err := e.Reconcile(t.Context(), reconcile.Request{}); err != nil || looked != 1 {
		t.Errorf("%v, looked %d times", err, looked)
	}
}
