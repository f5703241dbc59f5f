package changes

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func name(n string) types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: n} }

func next(t *testing.T, s *Set) Batch {
	t.Helper()
	b, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestManyChangesOfOnePolicyAreOne(t *testing.T) {
	s := NewSet(0)
	s.Add()
	for range 3 {
		s.Add(name("b"), name("a"))
	}
	if b := next(t, s); b.All || !slices.Equal(b.Names, []types.NamespacedName{name("a"), name("b")}) {
		t.Errorf("got %v", b)
	}
	s.Add(name("c"))
	if b := next(t, s); len(b.Names) != 1 || b.Names[0] != name("c") {
		t.Errorf("after a batch was taken: %v", b)
	}
}

func TestTooManyNamesAreAll(t *testing.T) {
	s := NewSet(0)
	for i := range Max + 1 {
		s.Add(name(strconv.Itoa(i)))
	}
	s.Add(name("one more"))
	if b := next(t, s); !b.All || b.Names != nil {
		t.Errorf("all %v with %d names", b.All, len(b.Names))
	}
	s.Add(name("a"))
	s.AddAll()
	if b := next(t, s); !b.All || b.Names != nil {
		t.Errorf("got %v", b)
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := NewSet(0).Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// What changes while a session's call ends, the call of the next session gets.
func TestWhatEndsWithItsContextIsNotLost(t *testing.T) {
	for what, add := range map[string]func(*Set){"one": func(s *Set) { s.Add(name("a")) }, "all": (*Set).AddAll} {
		synctest.Test(t, func(t *testing.T) {
			s := NewSet(time.Minute)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := s.Next(ctx)
				ended <- err
			}()
			add(s)
			synctest.Wait() // it gathers
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v", what, err)
			}
			ctx, stop = context.WithTimeout(t.Context(), time.Hour)
			defer stop()
			if b, err := s.Next(ctx); err != nil || !b.All && len(b.Names) != 1 {
				t.Errorf("%s, then: %v, %v", what, b, err)
			}
		})
	}
}
