package bus

import (
	"errors"
	"time"
)

// Message is one record read. Value and Key belong to the receiver and are not changed later.
// Value nil is a tombstone.
type Message struct {
	Topic     string
	Partition int32
	Offset    int64
	Key       []byte
	Value     []byte
	// Appended is the broker's stamp (LogAppendTime), ms precision.
	Appended time.Time
}

// Ack is what came of a Send. Err nil: the record is at Offset and carries Appended. Otherwise the
// record may or may not have been appended.
type Ack struct {
	Offset   int64
	Appended time.Time
	// Took is from hand-over to the producer to the acknowledgement.
	Took time.Duration
	Err  error
}

// ErrBusy is returned by Writer.Send where the lane's bound is reached: nothing was sent.
var ErrBusy = errors.New("an earlier record is not yet acknowledged")

// TopicID is Kafka's own id of a topic, 16 bytes; it changes when the topic is made anew.
type TopicID [16]byte

// From says where a Reader starts on a partition. The zero value is the oldest record retained.
type From struct {
	// Offset: that offset, if Set.
	Set    bool
	Offset int64
	// Age: the first record appended no longer than Age before the newest; used if positive.
	Age time.Duration
	// At: the first record appended at or after At; used if not zero.
	At time.Time
	// Newest: only what comes from now on.
	Newest bool
}
