package store

import (
	"errors"
	"fmt"
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// LogID is Kafka's id of weir.usage; offsets and epochs compare within one log id only.
type LogID [16]byte

// Owner is who asks: a partition, and the claim by which it is held.
type Owner struct {
	Partition int32
	LogID     LogID
	// Epoch is the offset of the owner's claim.
	Epoch int64
}

// Record is what a partition's record holds. The zero value with Offset −1 is "no record".
type Record struct {
	LogID LogID
	Epoch int64
	// Offset: every report up to and with it is in the stored counters; −1: none.
	Offset int64
	// Appended is the append time of Offset and OwnerTime the owner time at that flush, Unix ms.
	Appended, OwnerTime int64
	// Flush is the number of the epoch's last finished flush.
	Flush uint64
	// Clean: the owner handed over after its last flush.
	Clean bool
}

// Field is one number of a counter's state, under the index its Total gave it.
type Field = quota.Field

// Counter is one counter of a flush. Values are absolute.
type Counter struct {
	ID wirev1.ID
	// Through is the highest usage offset in the values, of the owner's log id; −1: none.
	Through int64
	// TTL is how long the store must keep it at least; the store adds jitter upwards.
	TTL    time.Duration
	Fields []Field
	// Whole: Fields is the whole state, and what the store holds is replaced. Identity, the
	// canonical encoding, is written then only.
	Whole    bool
	Identity []byte
}

// Saved is a counter as loaded. LogID says which log Through belongs to.
type Saved struct {
	ID       wirev1.ID
	Found    bool
	Identity []byte
	LogID    LogID
	Through  int64
	Fields   []Field
}

// Flush is one flush of a partition: counters in as many chunks as needed, then the record.
type Flush struct {
	Owner
	// Sequence numbers the epoch's flushes from 1; each attempt has a new one.
	Sequence uint64
	// Known is the number of the newest flush of this epoch that was seen to finish. A store that
	// knows less has lost something.
	Known uint64
	// Rewrite: the counters are all that live, each Whole; a loss before it does not matter.
	Rewrite  bool
	Counters []Counter
	// For the record, once every counter is written.
	Offset, Appended, OwnerTime int64
	Clean                       bool
}

// ErrFenced says that another owner has claimed the partition; the caller is not its owner any more.
var ErrFenced = errors.New("another owner has claimed the partition")

// ErrLost says that the store knows less than it had confirmed (emptied, or failed over to a replica that
// was behind). Nothing was written; all live counters must be rewritten (Flush.Rewrite).
var ErrLost = errors.New("the store has lost what it had confirmed")

// ErrSuperseded says that a newer flush of the same epoch has begun; this one changes nothing.
var ErrSuperseded = errors.New("a newer flush has begun")

// ErrUnavailable is wrapped by errors of calls that did not reach the store or were not answered.
var ErrUnavailable = errors.New("the store does not answer")

// fencedError names the epoch that is in force.
type fencedError struct {
	Owner
	by int64
}

func (e *fencedError) Error() string {
	return fmt.Sprintf("partition %d, epoch %d: %v (epoch %d)", e.Partition, e.Epoch, ErrFenced, e.by)
}

func (e *fencedError) Unwrap() error { return ErrFenced }

func fenced(o Owner, by int64) error { return &fencedError{o, by} }

// FencedBy is the epoch in force where the store refused an older one; false for any other error.
func FencedBy(err error) (epoch int64, ok bool) {
	var f *fencedError
	if errors.As(err, &f) {
		return f.by, true
	}
	return 0, false
}
