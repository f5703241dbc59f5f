package publish

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/policytopic"
)

// maxRecords bounds the records that are mirrored.
const maxRecords = 10_000

// book is the topic's content, as far as the controller needs it. Not safe for concurrent use.
type book struct {
	entries      map[policy.Key]entry
	installation *wirev1.Installation
	refused      bool // a record for want of room: the topic holds keys that entries lack
}

// entry is the newest record of a key.
type entry struct {
	version    int64
	generation int64
	hash       [sha256.Size]byte // of the value
}

func newBook() *book { return &book{entries: map[policy.Key]entry{}} }

// read takes one record of the log. changed: the policy's picture may be another than before.
func (b *book) read(m bus.Message) (name types.NamespacedName, changed bool, err error) {
	if string(m.Key) == policytopic.InstallationKey {
		return name, false, b.install(m)
	}
	key, err := policy.ParseKey(string(m.Key))
	if err != nil {
		return name, false, fmt.Errorf("offset %d of %s: %w", m.Offset, m.Topic, err)
	}
	changed, err = b.put(key, m.Offset, m.Value)
	return nameOf(key), changed, err
}

// put takes the value at a version; one older than what is known is passed over. A record that was
// written here and is read back changes nothing.
func (b *book) put(key policy.Key, version int64, value []byte) (changed bool, err error) {
	last, known := b.entries[key]
	switch {
	case known && version <= last.version:
		return false, nil
	case value == nil:
		delete(b.entries, key)
		return known, nil
	case !known && len(b.entries) >= maxRecords:
		b.refused = true
		return false, errFull(key)
	}
	b.entries[key] = entry{version, generationIn(value), sha256.Sum256(value)}
	return true, nil
}

func errFull(key policy.Key) error {
	return fmt.Errorf("policy %s: the topic has %d policies already; delete some", key, maxRecords)
}

// fits refuses a record that the mirror would have no room for once it is written.
func (b *book) fits(r policytopic.Record) error {
	if _, known := b.entries[r.Key]; !known && r.Value != nil && len(b.entries) >= maxRecords {
		return errFull(r.Key)
	}
	return nil
}

// generationIn is the generation that a record names; 0 where it has none, or cannot be read.
func generationIn(value []byte) int64 {
	var m wirev1.PolicyMessage
	if proto.Unmarshal(value, &m) != nil {
		return 0
	}
	return m.GetPolicy().GetGeneration()
}

func (b *book) install(m bus.Message) error {
	if m.Value == nil {
		b.installation = nil
		return nil
	}
	var msg wirev1.PolicyMessage
	if err := proto.Unmarshal(m.Value, &msg); err != nil || msg.GetInstallation() == nil {
		return fmt.Errorf("the installation's record at offset %d of %s is malformed; it is kept as it was", m.Offset, m.Topic)
	}
	b.installation = msg.GetInstallation()
	return nil
}

// holds reports whether the topic's newest record of r's key is r; for a tombstone, whether there is surely none.
func (b *book) holds(r policytopic.Record) bool {
	e, known := b.entries[r.Key]
	if r.Value == nil {
		return !known && !b.refused
	}
	return known && e.hash == sha256.Sum256(r.Value)
}

// published is what the topic has of a policy of origin kube.
func (b *book) published(n types.NamespacedName) Published {
	e, known := b.entries[kubeKey(n)]
	p := Published{Known: known, Version: e.version, Generation: e.generation}
	for _, origin := range []string{policy.OriginFile, policy.OriginCLI} {
		other := policy.Key{Origin: origin, Namespace: n.Namespace, Name: n.Name}
		if _, conflicts := b.entries[other]; conflicts {
			p.Others = append(p.Others, other)
		}
	}
	return p
}

// names lists the policies of origin kube, sorted.
func (b *book) names() []types.NamespacedName {
	var out []types.NamespacedName
	for k := range b.entries {
		if k.Origin == policy.OriginKube {
			out = append(out, nameOf(k))
		}
	}
	slices.SortFunc(out, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return out
}

func kubeKey(n types.NamespacedName) policy.Key {
	return policy.Key{Origin: policy.OriginKube, Namespace: n.Namespace, Name: n.Name}
}

func nameOf(k policy.Key) types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}
