package simulate

import (
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/quota"
)

// usageLog is the partition of weir.usage: what is appended, kept for a while, and when a reader has it.
type usageLog struct {
	id       bus.TopicID
	records  []logged
	first    int64 // offset of records[0]
	readable quota.Time
}

type logged struct {
	value    []byte
	appended quota.Millis
	readable quota.Time
}

// retention of weir.usage.
const retention = 10 * time.Minute

func newUsageLog(rng *rand.Rand) usageLog {
	var l usageLog
	binary.LittleEndian.PutUint64(l.id[:], rng.Uint64()|1)
	return l
}

// append returns the record's offset. Readers have it read later, or when they have what came before.
func (l *usageLog) append(value []byte, now quota.Time, read time.Duration) (offset int64, readable quota.Time) {
	l.readable = max(l.readable, now+quota.Time(read))
	l.records = append(l.records, logged{value, dateOf(now), l.readable})
	l.trim(now)
	return l.end() - 1, l.readable
}

func (l *usageLog) end() int64 { return l.first + int64(len(l.records)) }

// trim drops what is past retention, now and then.
func (l *usageLog) trim(now quota.Time) {
	if len(l.records)%4096 != 0 {
		return
	}
	oldest := dateOf(now) - quota.Millis(retention/time.Millisecond)
	n := 0
	for n < len(l.records) && l.records[n].appended < oldest {
		n++
	}
	l.records = append(l.records[:0:0], l.records[n:]...)
	l.first += int64(n)
}

// at is the offset of the first record appended at a time or later.
func (l *usageLog) at(t quota.Millis) int64 {
	for i := range l.records {
		if l.records[i].appended >= t {
			return l.first + int64(i)
		}
	}
	return l.end()
}
