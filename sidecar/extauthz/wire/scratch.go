package wire

import (
	"slices"

	"github.com/weirproxy/weir/sidecar/match"
)

// Bounds on memory kept from one check to the next.
const (
	maxKeptHeaders = 512
	maxKeptBytes   = 4096
)

// Scratch is the memory of one scan at a time. The zero value is ready.
type Scratch struct {
	used    bool // since it was reset
	want    *Wanted
	req     match.Request
	http    bool
	address string

	// of the entry or header under way
	key, value, rawValue string

	raw    []match.Header
	joined []joinedHeader    // by their index in want
	all    map[string]string // headers where all are wanted; nil otherwise
	spare  map[string]string // all's memory
	claims claims
}

// joinedHeader is a header of the joined form; there where the check has it.
type joinedHeader struct {
	value string
	there bool
}

// Reset lets go of the last scan's bytes, and of memory that an unusual check needed.
func (s *Scratch) Reset() {
	if !s.used {
		return
	}
	if s.all != nil {
		s.spare = s.all
	}
	if len(s.spare) > maxKeptHeaders {
		s.spare = nil
	}
	clear(s.spare)
	s.claims.reset()
	*s = Scratch{raw: emptied(s.raw), joined: emptied(s.joined), spare: s.spare, claims: s.claims}
}

// emptied is a slice's memory without what it holds; nil where that is too much to keep.
func emptied[T any](of []T) []T {
	if cap(of) > maxKeptHeaders {
		return nil
	}
	clear(of)
	return of[:0]
}

// grown is an empty slice with n zero items.
func grown[T any](of []T, n int) []T {
	if cap(of) < n {
		return make([]T, n)
	}
	return of[:n]
}

// join takes a header of the joined form. The last of a name counts.
func (s *Scratch) join(name, value string) {
	if s.want != nil {
		if i := s.want.index(name); i >= 0 {
			s.joined[i] = joinedHeader{value: value, there: true}
		}
		return
	}
	if s.all == nil {
		if s.all = s.spare; s.all == nil {
			s.all = make(map[string]string)
		}
	}
	s.all[name] = value
}

// settle makes one list of wanted headers of both forms. No Envoy sends both; where they come, the joined
// form counts, as it does for match.
func (s *Scratch) settle() {
	if s.want == nil {
		return
	}
	s.raw = slices.DeleteFunc(s.raw, func(h match.Header) bool { return s.joined[s.want.index(h.Name)].there })
	for i, h := range s.joined {
		if h.there {
			s.raw = append(s.raw, match.Header{Name: s.want.names[i], Value: h.value})
		}
	}
}
