package bus

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

// Signatures first; bodies follow in the next commits.
var errNotYet = errors.New("not built yet")

// Client is a connection to Kafka: metadata and administration. Safe for concurrent use.
type Client struct{}

// Dial returns a client once one broker has answered; it retries until ctx ends.
func Dial(ctx context.Context, cfg Config, log *zap.Logger) (*Client, error) { return nil, errNotYet }

// Close ends the client. Readers, writers and groups made from it must have ended before.
func (c *Client) Close() error { return errNotYet }

// TopicID returns the topic's own id.
func (c *Client) TopicID(ctx context.Context, topic string) (TopicID, error) {
	return TopicID{}, errNotYet
}

// Partitions returns the number of partitions of topic.
func (c *Client) Partitions(ctx context.Context, topic string) (int32, error) { return 0, errNotYet }

// OffsetAt returns the first offset appended at or after t; the end (Newest) if there is none.
func (c *Client) OffsetAt(ctx context.Context, topic string, partition int32, t time.Time) (int64, error) {
	return 0, errNotYet
}

// Oldest returns the oldest retained offset, Newest the one that the next record will get.
func (c *Client) Oldest(ctx context.Context, topic string, partition int32) (int64, error) {
	return 0, errNotYet
}

// Newest returns the offset that the next record will get.
func (c *Client) Newest(ctx context.Context, topic string, partition int32) (int64, error) {
	return 0, errNotYet
}

// Ensure makes missing topics and, unless dryRun, sets settings that differ. It returns all differences.
func (c *Client) Ensure(ctx context.Context, t Topics, dryRun bool) ([]Change, error) {
	return nil, errNotYet
}

// Check returns the differences as Ensure would find them, and changes nothing.
func (c *Client) Check(ctx context.Context, t Topics) ([]Change, error) { return nil, errNotYet }

// ReaderConfig says what a Reader reads and whom it tells. Callbacks of one partition run on that
// partition's goroutine, one after the other; those of different partitions run side by side.
type ReaderConfig struct {
	Topic      string
	Partitions map[int32]From
	// Handle gets each record in order. Required.
	Handle func(Message)
	// CaughtUp is called once a partition, when everything up to its end as of Run's start is handled.
	CaughtUp func(partition int32)
	// Gap: records from `from` up to, not including, `to` are gone unread (retention).
	Gap func(partition int32, from, to int64)
	// Recreated: the topic is another one now; reading goes on from its oldest record.
	Recreated func(id TopicID)
	// State gets the reason why a partition cannot be read, "" when it can; only on change.
	State func(partition int32, reason string)
	// Error gets each failure, for counting.
	Error func(partition int32, err error)
	// MaxWait is how long a broker holds a fetch without records. Default: 500 ms.
	MaxWait time.Duration
	// MaxBytes of one fetch. Default: 1 MiB.
	MaxBytes int32
}

// Reader reads partitions without a group. See NewReader.
type Reader struct{}

// NewReader returns a reader that reads once Run runs.
func NewReader(c *Client, cfg ReaderConfig) *Reader { return nil }

// Run reads until ctx ends, and then returns nil at once.
func (r *Reader) Run(ctx context.Context) error { return errNotYet }

// WriterConfig bounds a Writer.
type WriterConfig struct {
	// Depth is how many unacknowledged records a topic's lanes may hold. Default: 1.
	Depth map[string]int
	// DrainTimeout bounds what Run waits for acknowledgements when stopped. Default: 2 s.
	DrainTimeout time.Duration
	// State gets the reason why records cannot be written, "" when they can; only on change.
	State func(reason string)
}

// Writer sends records and never waits. Safe for concurrent use.
type Writer struct{}

// NewWriter returns a writer that sends once Run runs.
func NewWriter(c *Client, cfg WriterConfig) *Writer { return nil }

// Send hands a record over and returns at once: ErrBusy or ErrClosed if it was not taken, and then
// done is never called; else done is called exactly once, on a goroutine of the writer's, and must
// not block. A nil value is a tombstone. key and value must not be changed until then.
func (w *Writer) Send(topic string, partition int32, key, value []byte, done func(Ack)) error {
	return errNotYet
}

// Run sends until ctx ends, then drains within DrainTimeout; what is not acknowledged by then
// fails with ErrClosed.
func (w *Writer) Run(ctx context.Context) error { return errNotYet }

// ErrClosed is returned by a writer that has been stopped.
var ErrClosed = errors.New("the writer is stopped")

// GroupConfig names a member of a consumer group.
type GroupConfig struct {
	// Group and Topic; Instance is the static member's id, the same after a restart.
	Group, Topic, Instance string
	// Leave: on stop partitions pass on at once. Otherwise they are kept for the session time-out.
	Leave bool
	// Session after which a silent member loses its partitions. Default: 6 s.
	Session time.Duration
	// Heartbeat period. Default: 100 ms.
	Heartbeat time.Duration
	// StopTimeout bounds the wait for own to return. Default: 3 s.
	StopTimeout time.Duration
	// State gets the reason why the group cannot be joined, "" when it is; only on change.
	State func(reason string)
	// Assigned gets the partitions held, after each rebalance.
	Assigned func(partitions []int32)
}

// Group says which partitions are this process's own. It reads nothing.
type Group struct{}

// NewGroup returns a member that joins once Run runs.
func NewGroup(c *Client, cfg GroupConfig) *Group { return nil }

// Run holds partitions until ctx ends: own runs on a goroutine for each partition held, until its
// context ends; it is not run twice at a time for a partition. Errors never end Run.
func (g *Group) Run(ctx context.Context, own func(ctx context.Context, partition int32) error) error {
	return errNotYet
}
