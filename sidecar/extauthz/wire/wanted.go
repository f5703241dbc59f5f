package wire

import (
	"math/bits"
	"slices"
	"strings"
)

// Wanted is what decisions and answers need of a check. It is immutable and safe for concurrent use; nil
// wants all.
type Wanted struct {
	names  []string
	first  []int32 // by bucket: the index of a name plus 1; 0: none. A power of two of them
	next   []int32 // by index: another name of the same bucket
	claims bool
}

// bucket spreads names by what tells most of them apart; most headers of a check meet an empty one.
func (w *Wanted) bucket(name string) int {
	n := len(name)
	if n == 0 {
		return 0
	}
	return (n + 7*int(name[n-1]) + 13*int(name[n/2])) & (len(w.first) - 1)
}

// NewWanted wants the headers that policies name, and claims where some policy looks at any. Headers that
// the program itself looks at are wanted always.
func NewWanted(headers []string, claims bool) *Wanted {
	w := &Wanted{claims: claims}
	own := []string{
		"content-type", "origin", // the form of a refusal
		"access-control-request-method", "user-agent", // presets of exclude
		"x-forwarded-for", // trustedHops
	}
	all := slices.Concat(own, headers)
	w.first = make([]int32, 1<<bits.Len(uint(8*len(all))))
	for _, name := range all {
		name = strings.ToLower(name)
		if w.index(name) >= 0 {
			continue
		}
		bucket := w.bucket(name)
		w.names = append(w.names, name)
		w.next = append(w.next, w.first[bucket])
		w.first[bucket] = int32(len(w.names)) //nolint:gosec // policies are far fewer
	}
	return w
}

// index of a wanted header; -1 if it is none.
func (w *Wanted) index(name string) int {
	i := w.first[w.bucket(name)] - 1
	for i >= 0 && w.names[i] != name {
		i = w.next[i] - 1
	}
	return int(i)
}

// name is a wanted header's name, in memory that stays.
func (w *Wanted) name(name string) (string, bool) {
	if w == nil {
		return name, true
	}
	i := w.index(name)
	if i < 0 {
		return "", false
	}
	return w.names[i], true
}

func (w *Wanted) wantsClaims() bool { return w == nil || w.claims }
