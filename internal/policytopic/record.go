package policytopic

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/weirproxy/weir/api/v1alpha1"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
)

// InstallationKey is the key of the installation's record.
const InstallationKey = "installation"

// Record is one record to publish; Value nil deletes.
type Record struct {
	Key   policy.Key
	Value []byte
}

// Source is a document and what its publisher knows beside it.
type Source struct {
	Origin   string
	Document *v1alpha1.QuotaPolicy
	// Targets are the targets that select pods, with their selectors, in the order of their names.
	Targets []*wirev1.ResolvedTarget
	// Generation is metadata.generation of the document's object; 0: there is none.
	Generation int64
}

// NewRecord makes a valid document's record, its secrets hashed. Equal sources give equal bytes.
func NewRecord(s Source, keys wirev1.Keys) (Record, error) {
	key, msg, err := policy.Encode(s.Origin, s.Document, keys, s.Targets)
	if err != nil {
		return Record{}, err
	}
	msg.Generation = s.Generation
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(
		&wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Policy{Policy: msg}})
	if err != nil {
		return Record{}, fmt.Errorf("encode %s: %w", key, err)
	}
	return Record{key, value}, nil
}
