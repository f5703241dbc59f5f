package agent

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
)

// policies is what the policy topic, or before it the file of last good policies, says. A bad version
// leaves the last good one of its key in force. Not safe for concurrent use.
type policies struct {
	keys         wirev1.Keys
	byKey        map[string]*keptPolicy
	installation *wirev1.Installation
	// read: the topic has been read to its end once.
	read bool
	// changed: something has come since the last snapshot.
	changed bool
}

// keptPolicy is one key of the topic.
type keptPolicy struct {
	good  *policy.Policy // nil: no version was ever good
	value []byte         // the good version's record
	force *policy.Policy // what the last snapshot was made of; nil: nothing
	seen  int64
	err   string
	saved bool // from the file, not yet seen in the topic
}

func newPolicies(keys wirev1.Keys) *policies {
	return &policies{keys: keys, byKey: map[string]*keptPolicy{}}
}

// restore takes up the file's policies. It returns how many of them are no longer understood.
func (p *policies) restore(l *lastGood) (bad int) {
	for _, s := range l.Policies {
		if _, err := p.apply(s.Key, s.Version, s.Value); err != nil {
			bad++
			delete(p.byKey, s.Key)
			continue
		}
		if k := p.byKey[s.Key]; k != nil {
			k.saved = true
		}
	}
	return bad
}

// apply takes one record of the topic; value nil deletes. changed: what is in force may have changed. An
// error says why a version is refused.
func (p *policies) apply(key string, version int64, value []byte) (changed bool, err error) {
	if value == nil {
		_, held := p.byKey[key]
		delete(p.byKey, key)
		return held, nil
	}
	var m wirev1.PolicyMessage
	if err := proto.Unmarshal(value, &m); err != nil {
		return false, p.refuse(key, version, fmt.Errorf("malformed record: %w", err))
	}
	if i := m.GetInstallation(); i != nil {
		changed := !proto.Equal(i, p.installation)
		p.installation = i
		return changed, nil
	}
	return p.applyPolicy(key, version, value, m.GetPolicy())
}

func (p *policies) applyPolicy(key string, version int64, value []byte, source *wirev1.Policy) (bool, error) {
	if source == nil {
		return false, p.refuse(key, version, fmt.Errorf("a record of neither a policy nor an installation; upgrade this program"))
	}
	if k := p.byKey[key]; k != nil && k.good != nil && bytes.Equal(k.value, value) {
		return k.again(version), nil
	}
	k, err := parseKey(key)
	if err != nil {
		return false, p.refuse(key, version, err)
	}
	compiled, err := policy.Decode(k, version, source)
	if err != nil {
		return false, p.refuse(key, version, err)
	}
	next := &keptPolicy{good: compiled, value: bytes.Clone(value), seen: version}
	if last := p.byKey[key]; last != nil {
		next.force = last.force
	}
	p.byKey[key] = next
	return true, nil
}

// again takes up that the good version's record was published once more, or only read again.
func (k *keptPolicy) again(version int64) (changed bool) {
	changed = k.good.Version != version
	k.good = k.good.Reissued(version)
	k.saved, k.seen, k.err = false, version, ""
	return changed
}

func (p *policies) refuse(key string, version int64, why error) error {
	k := p.byKey[key]
	if k == nil {
		k = &keptPolicy{}
		p.byKey[key] = k
	}
	k.seen, k.err, k.saved = version, why.Error(), false
	return fmt.Errorf("policy %s, version %d: %w", key, version, why)
}

// readToEnd notes that the topic has been read once; what only the file knew has been deleted since.
func (p *policies) readToEnd() (changed bool) {
	p.read = true
	for key, k := range p.byKey {
		if k.saved {
			delete(p.byKey, key)
			changed = true
		}
	}
	return changed
}

// good returns the policies that may be in force, conflicts included.
func (p *policies) good() []*policy.Policy {
	var out []*policy.Policy
	for _, key := range p.sorted() {
		if k := p.byKey[key]; k.good != nil {
			out = append(out, k.good)
		}
	}
	return out
}

func (p *policies) sorted() []string {
	keys := make([]string, 0, len(p.byKey))
	for key := range p.byKey {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// inForce notes that a snapshot has been made of the good versions.
func (p *policies) inForce() {
	for _, k := range p.byKey {
		k.force = k.good
	}
}

// applied says for the status record what is in force and what was refused.
func (p *policies) applied() []*wirev1.AppliedPolicy {
	var out []*wirev1.AppliedPolicy
	for _, key := range p.sorted() {
		k := p.byKey[key]
		a := &wirev1.AppliedPolicy{Key: key, Version: -1, Seen: k.seen, Error: k.err}
		if k.force != nil {
			a.Version, a.Generation = k.force.Version, k.force.Generation
		}
		out = append(out, a)
	}
	return out
}

// refused lists the keys whose newest version is not in force.
func (p *policies) refused() []string {
	var out []string
	for _, key := range p.sorted() {
		if p.byKey[key].err != "" {
			out = append(out, key)
		}
	}
	return out
}

// save returns what the file is to hold.
func (p *policies) save() []savedPolicy {
	var out []savedPolicy
	for _, key := range p.sorted() {
		if k := p.byKey[key]; k.good != nil {
			out = append(out, savedPolicy{Key: key, Version: k.good.Version, Value: k.value})
		}
	}
	return out
}

// parseKey reads a record's key, origin/namespace/name.
func parseKey(key string) (policy.Key, error) {
	parts := strings.Split(key, "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return policy.Key{}, fmt.Errorf("record key %q: want origin/namespace/name", key)
	}
	return policy.Key{Origin: parts[0], Namespace: parts[1], Name: parts[2]}, nil
}
