package wire

import (
	"slices"
	"strings"
)

// Wanted is what decisions and answers need of a check. It is immutable and safe for concurrent use; nil
// wants all.
type Wanted struct {
	names   []string
	indexes map[string]int
	lengths uint64 // bit n: some name has n bytes, modulo 64
	claims  bool
}

// NewWanted wants the headers that policies name, and claims where some policy looks at any. Headers that
// the program itself looks at are wanted always.
func NewWanted(headers []string, claims bool) *Wanted {
	w := &Wanted{claims: claims, indexes: make(map[string]int)}
	own := []string{
		"content-type", "origin", // the form of a refusal
		"access-control-request-method", "user-agent", // presets of exclude
		"x-forwarded-for", // trustedHops
	}
	for _, name := range slices.Concat(own, headers) {
		name = strings.ToLower(name)
		if _, ok := w.indexes[name]; ok {
			continue
		}
		w.indexes[name] = len(w.names)
		w.names = append(w.names, name)
		w.lengths |= 1 << (len(name) % 64)
	}
	return w
}

// index of a wanted header; -1 if it is none.
func (w *Wanted) index(name string) int {
	if w.lengths>>(len(name)%64)&1 == 0 {
		return -1
	}
	if i, ok := w.indexes[name]; ok {
		return i
	}
	return -1
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
