package partition

import (
	"time"

	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// Config says which partition is owned and by whom. Zero values of the fields that have a default
// take it.
type Config struct {
	// Partitions is P, of usage and decisions.
	Partitions int32
	// Owner holds the partition, the log's id and the epoch: the offset of the claim.
	Owner store.Owner
	// Nonces are those of the claims that this owner appended; the last is that of Owner.Epoch.
	Nonces []uint64
	// Instance is the aggregator's instance id, for people.
	Instance string
	Keys     wirev1.Keys

	// Flush is the pods' flush period. Default 50 ms.
	Flush time.Duration
	// HotTick and IdleTick are the periods of headers. Defaults 25 and 100 ms.
	HotTick, IdleTick time.Duration
	// StoreFlush is the period of flushes to the store. Default 50 ms.
	StoreFlush time.Duration
	// MaxCounters is the cap of live counters a target. Default 200,000.
	MaxCounters int
	// MaxWaiting bounds the entries that wait for a counter's text, state or policy. Default 65,536.
	MaxWaiting int
	// BytesPerSecond and BatchesPerSecond are the budget of the decisions partition. Defaults
	// 256 KiB and 60.
	BytesPerSecond, BatchesPerSecond float64

	flushBatch int // counters a flush
}

func (c Config) withDefaults() Config {
	def(&c.Flush, 50*time.Millisecond)
	def(&c.HotTick, 25*time.Millisecond)
	def(&c.IdleTick, 100*time.Millisecond)
	def(&c.StoreFlush, 50*time.Millisecond)
	def(&c.MaxCounters, 200_000)
	def(&c.MaxWaiting, 65_536)
	def(&c.BytesPerSecond, 256<<10)
	def(&c.BatchesPerSecond, 60)
	def(&c.flushBatch, flushBatch)
	return c
}

func def[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}

const (
	wantedPerHeader  = 64
	wantedAgain      = 250 * time.Millisecond // a text asked for is asked for again
	waitTextFor      = 10 * time.Second       // an entry waits no longer for text or policy
	headerTargets    = 5 * time.Second        // all targets are in a header at least so often
	urgentGap        = 5 * time.Millisecond   // between batches
	keepTotals       = 60 * time.Second       // beyond the window, here and in the store
	slack            = 5 * time.Second        // beyond the window, before an unseen counter is empty
	stuckLoad        = 200 * time.Millisecond // loads older than this defer renewals
	maxPods          = 100_000
	podSilence       = 10 * time.Minute
	maxFolded        = 200_000
	maxTargetsOwned  = 100_000
	targetsPerHeader = 1000
	loadBatch        = 1000
	flushBatch       = 10_000
	maxUnits         = 1e12             // a second, of one pod, whatever a request costs
	maxRequests      = 1e6              // a second, of one pod
	maxBatch         = 800 << 10        // bytes of one message
	emptyFlush       = time.Second      // the record is written at least so often while reports come
	quietFlush       = 10 * time.Second // and so often while none do
)
