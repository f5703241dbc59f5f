package policy

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// maxPublished is the largest document that readPublished reads, bytes: too few for the values of one to
// pass Parse's bound.
const maxPublished = 64 << 10

// readPublished reads a document that is byte for byte what Marshal writes: as Parse does, but in a fraction of its
// time, since a program starts by reading every policy there is. nil where it is anything else or invalid; Parse
// then says what is wrong, and where. No unknown, repeated or empty field outlives being written again.
func readPublished(text []byte) *v1alpha1.QuotaPolicy {
	if len(text) > maxPublished {
		return nil
	}
	doc := new(v1alpha1.QuotaPolicy)
	if json.Unmarshal(text, doc) != nil {
		return nil
	}
	if doc.Metadata.Labels != nil || doc.Metadata.Annotations != nil { // never published; and YAML has bounds on keys
		return nil
	}
	if again, err := Marshal(doc); err != nil || !bytes.Equal(again, text) {
		return nil
	}
	if len(Validate(doc)) > 0 {
		return nil
	}
	return doc
}

// readRecord returns the one document of a record.
func readRecord(key Key, text []byte) (*v1alpha1.QuotaPolicy, error) {
	if doc := readPublished(text); doc != nil {
		return doc, nil
	}
	docs, err := Parse(key.String(), text)
	if err != nil {
		return nil, err
	}
	if len(docs) != 1 {
		return nil, fmt.Errorf("policy %s: %d documents in the record, want 1; publish it anew", key, len(docs))
	}
	return docs[0], nil
}
