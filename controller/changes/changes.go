// Package changes gathers the policies whose picture may have changed, for someone who looks at them
// later: many changes of one policy are one, and a set that grows too large becomes "all of them".
package changes

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Max is how many policies a Set names; beyond it, it says All.
const Max = 10_000

// Batch is what changed since the last one.
type Batch struct {
	// Names are sorted; nil where All.
	Names []types.NamespacedName
	All   bool
}

// Set gathers names. It is safe for concurrent use; one goroutine calls Next.
type Set struct {
	pause time.Duration
	some  chan struct{} // holds a value while there is something

	mu    sync.Mutex
	names map[types.NamespacedName]struct{}
	all   bool
}

// NewSet returns an empty set. pause is how long Next gathers more after the first change: a fleet of
// pods tells of one new version within some tenths of a second, and is worth one look. 0: not at all.
func NewSet(pause time.Duration) *Set {
	return &Set{pause: pause, some: make(chan struct{}, 1), names: map[types.NamespacedName]struct{}{}}
}

// Add puts names in; it never waits.
func (s *Set) Add(names ...types.NamespacedName) {
	if len(names) == 0 {
		return
	}
	s.mu.Lock()
	for _, n := range names {
		s.put(n)
	}
	s.mu.Unlock()
	s.signal()
}

func (s *Set) put(n types.NamespacedName) {
	if s.all {
		return
	}
	if s.names[n] = struct{}{}; len(s.names) > Max {
		s.becomeAll()
	}
}

// AddAll says that every policy may have changed; it never waits.
func (s *Set) AddAll() {
	s.mu.Lock()
	s.becomeAll()
	s.mu.Unlock()
	s.signal()
}

func (s *Set) becomeAll() {
	s.all = true
	clear(s.names)
}

func (s *Set) signal() {
	select {
	case s.some <- struct{}{}:
	default:
	}
}

// Next waits until something has changed and takes it out. It fails only where ctx ends; what has changed
// by then is the next call's.
func (s *Set) Next(ctx context.Context) (Batch, error) {
	select {
	case <-s.some:
	case <-ctx.Done():
		return Batch{}, context.Cause(ctx)
	}
	if s.pause > 0 {
		t := time.NewTimer(s.pause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			s.signal()
			return Batch{}, context.Cause(ctx)
		}
	}
	return s.take(), nil
}

func (s *Set) take() Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.some: // it is taken now
	default:
	}
	b := Batch{All: s.all}
	for n := range s.names {
		b.Names = append(b.Names, n)
	}
	slices.SortFunc(b.Names, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	s.all = false
	clear(s.names)
	return b
}
