package policies

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/policytopic"
)

// MaxPolicies bounds the policies that are kept.
const MaxPolicies = 10_000

// Book is the topic's content as a state machine. It is for one goroutine.
type Book struct {
	entries      map[policy.Key]*entry
	installation *wirev1.Installation
}

type entry struct {
	good *policy.Policy    // the newest version that compiled; nil: none
	seen int64             // newest version
	hash [sha256.Size]byte // of the newest version's value
	err  error             // why the newest version is not in force
}

// Problem is a policy whose newest version is not in force.
type Problem struct {
	Key     policy.Key
	Version int64
	Err     error
}

// NewBook makes an empty book.
func NewBook() *Book { return &Book{entries: map[policy.Key]*entry{}} }

// Apply takes one record and reports whether the policies in force or the installation changed. A
// record that cannot be used is an error and keeps the last good version.
func (b *Book) Apply(m bus.Message) (changed bool, err error) {
	if string(m.Key) == policytopic.InstallationKey {
		return b.install(m)
	}
	key, err := policy.ParseKey(string(m.Key))
	if err != nil {
		return false, fmt.Errorf("offset %d of %s: %w", m.Offset, m.Topic, err)
	}
	if m.Value == nil {
		_, known := b.entries[key]
		delete(b.entries, key)
		return known, nil
	}
	e := b.entries[key]
	if e == nil {
		if len(b.entries) >= MaxPolicies {
			return false, fmt.Errorf("policy %s: there are %d policies already; delete some", key, MaxPolicies)
		}
		e = &entry{}
		b.entries[key] = e
	}
	e.seen, e.hash = m.Offset, sha256.Sum256(m.Value)
	compiled, err := decode(key, m)
	if e.err = err; err != nil {
		return false, fmt.Errorf("version %d of %w", m.Offset, err)
	}
	e.good = compiled
	return true, nil
}

func decode(key policy.Key, m bus.Message) (*policy.Policy, error) {
	var msg wirev1.PolicyMessage
	if err := proto.Unmarshal(m.Value, &msg); err != nil || msg.GetPolicy() == nil {
		return nil, fmt.Errorf("policy %s: the record holds no policy; publish it anew", key)
	}
	return policy.Decode(key, m.Offset, msg.GetPolicy())
}

func (b *Book) install(m bus.Message) (bool, error) {
	if m.Value == nil {
		b.installation = nil
		return true, nil
	}
	var msg wirev1.PolicyMessage
	if err := proto.Unmarshal(m.Value, &msg); err != nil || msg.GetInstallation() == nil {
		return false, errors.New("the installation's record is malformed; it is kept as it was")
	}
	b.installation = msg.GetInstallation()
	return true, nil
}

// Set is a snapshot of the policies in force.
func (b *Book) Set() *policy.Set {
	var all []*policy.Policy
	for _, e := range b.entries {
		if e.good != nil {
			all = append(all, e.good)
		}
	}
	return policy.NewSet(all)
}

// Problems lists the policies whose newest version is not in force.
func (b *Book) Problems() []Problem {
	var out []Problem
	for k, e := range b.entries {
		if e.err != nil {
			out = append(out, Problem{k, e.seen, e.err})
		}
	}
	return out
}

// Installation is the installation's record, nil if there is none.
func (b *Book) Installation() *wirev1.Installation { return b.installation }

// hashes returns the newest values' hashes of one origin.
func (b *Book) hashes(origin string) map[policy.Key][sha256.Size]byte {
	out := map[policy.Key][sha256.Size]byte{}
	for k, e := range b.entries {
		if k.Origin == origin {
			out[k] = e.hash
		}
	}
	return out
}
