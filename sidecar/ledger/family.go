package ledger

import (
	"math"

	"github.com/weirproxy/weir/internal/quota"
)

// kind is what the counters of one limit, with one amount, have in common: the fields of Key.
type kind struct {
	Limit     string
	Target    string
	Partition int32
	Overflow  bool
	Rule      *quota.Rule
	Fresh     *quota.Fresh
	Fleet     *quota.Fleet
}

func (k *Key) kind() kind {
	return kind{k.Limit, k.Target, k.Partition, k.Overflow, k.Rule, k.Fresh, k.Fleet}
}

// family is a kind that has counters, and the beginning of their identities, which is most of them: target, policy,
// limit and window come before what a request says.
type family struct {
	kind

	first string // identity of its first counter
	slots int
}

// families are those with a slot, under the arena's lock.
type families map[kind]*family

// join returns the family of a new counter, and how much of the identity it has in common with the family's first one.
func (f families) join(k *Key) (fam *family, shared int) {
	kind := k.kind()
	fam = f[kind]
	if fam == nil {
		fam = &family{kind: kind, first: string(k.Identity)}
		f[kind] = fam
	}
	fam.slots++
	return fam, fam.common(k.Identity)
}

// costs is how many bytes an identity adds.
func (f families) costs(k *Key) int {
	if fam := f[k.kind()]; fam != nil {
		return len(k.Identity) - fam.common(k.Identity)
	}
	return len(k.Identity)
}

// leave returns the bytes that are given back with a slot.
func (f families) leave(s *Slot) int {
	bytes := len(s.tail)
	if s.slots--; s.slots == 0 {
		delete(f, s.kind)
		bytes += len(s.first)
	}
	return bytes
}

func (f *family) common(identity []byte) int {
	n := 0
	for n < len(identity) && n < len(f.first) && n < math.MaxUint16 && identity[n] == f.first[n] {
		n++
	}
	return n
}

// Identity is the counter's canonical encoding, in memory of the caller's; empty once the slot is freed. For the
// control goroutine.
func (s *Slot) Identity() []byte {
	if s.freed {
		return nil
	}
	return append(append(make([]byte, 0, s.IdentityLen()), s.first[:s.shared]...), s.tail...)
}

// IdentityLen is the length of Identity.
func (s *Slot) IdentityLen() int { return int(s.shared) + len(s.tail) }
