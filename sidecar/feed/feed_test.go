package feed

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

const (
	key   = 0xfeed
	start = quota.Millis(1_790_000_000_000)
)

var logA, logB = []byte("aaaaaaaaaaaaaaaa"), []byte("bbbbbbbbbbbbbbbb")

func header(epoch int64, sequence uint64, watermark int64) *wirev1.Header {
	return &wirev1.Header{LogId: logA, KeyFingerprint: key, Epoch: epoch, Sequence: sequence, Watermark: watermark}
}

func encode(t interface{ Fatal(...any) }, h *wirev1.Header, records ...*wirev1.Record) []byte {
	b, err := proto.Marshal(&wirev1.DecisionBatch{Header: h, Records: records})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func hotRecord(id uint64) *wirev1.Record {
	return &wirev1.Record{IdHi: 1, IdLo: id, Amount: 100, Rate: 100, Remaining: 1, Demand: 300, ShareSum: 300, Grant: 100}
}

func TestBatchesAreTakenInTheOrderOfEpochAndSequence(t *testing.T) {
	p := NewPartition(key, nil)
	for _, step := range []struct {
		name  string
		value []byte
		want  Ignored
		owner bool
	}{
		{"the first", encode(t, header(5, 3, 10)), "", true},
		{"the next", encode(t, header(5, 4, 12)), "", false},
		{"repeated", encode(t, header(5, 4, 12)), OldSequence, false},
		{"late", encode(t, header(5, 2, 13)), OldSequence, false},
		{"a watermark that goes back", encode(t, header(5, 5, 11)), Watermark, false},
		{"a gap is no harm", encode(t, header(5, 9, 12)), "", false},
		{"a new owner begins its own sequence", encode(t, header(20, 1, 20)), "", true},
		{"the zombie", encode(t, header(5, 10, 30)), OldEpoch, false},
		{"no protobuf", []byte{0xff, 0xff}, Malformed, false},
		{"no header", nil, Malformed, false},
		{"another key", encode(t, &wirev1.Header{LogId: logA, KeyFingerprint: 1, Epoch: 30}), Fingerprint, false},
		{"another log", encode(t, &wirev1.Header{LogId: logB, KeyFingerprint: key, Epoch: 30}), LogID, false},
		{"nothing stalls", encode(t, header(20, 2, 21)), "", false},
	} {
		u, why := p.Handle(step.value, start, 0)
		if why != step.want || (u == nil) != (why != "") || u != nil && u.NewOwner != step.owner {
			t.Errorf("%s: %v, %q; want %q", step.name, u, why, step.want)
		}
	}
}

func TestANewLogBeginsAnew(t *testing.T) {
	p := NewPartition(key, logA)
	p.Handle(encode(t, header(50, 7, 900)), start, 0)
	if p.SetLogID(logA) {
		t.Error("the same log is news")
	}
	if !p.SetLogID(logB) {
		t.Error("another log is none")
	}
	h := header(3, 1, 2)
	h.LogId = logB
	if _, why := p.Handle(encode(t, h), start, 0); why != "" {
		t.Errorf("lower numbers of the new log are refused: %s", why)
	}
	if _, why := p.Handle(encode(t, header(51, 8, 901)), start, 0); why != LogID {
		t.Errorf("the old log's owner is heard: %q", why)
	}
}

// Case 7: the pod's and the broker's clocks may be years apart; only how much later than the
// quickest a batch came counts.
func TestCase07AgeIsTheExcessOverTheSmallestDelay(t *testing.T) {
	p := NewPartition(key, nil)
	ms := quota.Time(time.Millisecond)
	handle := func(seq uint64, appended quota.Millis, now quota.Time) quota.Time {
		u, why := p.Handle(encode(t, header(1, seq, 0)), start+appended, now)
		if why != "" {
			t.Fatal(why)
		}
		return now - u.Header.Received
	}
	if late := handle(1, 0, 1000*ms); late != 0 {
		t.Errorf("the first batch is %v late", time.Duration(late))
	}
	if late := handle(2, 100, 1180*ms); late != 80*ms {
		t.Errorf("a batch 80 ms slower than the quickest is %v late", time.Duration(late))
	}
	if late := handle(3, 200, 1190*ms); late != 0 {
		t.Errorf("the quickest so far is %v late", time.Duration(late))
	}
	if got := p.Received(start + 100); got != 1090*ms {
		t.Errorf("in hindsight the second was received at %v, want 1.09s", time.Duration(got))
	}
	// a minute later the path has become slower for good: that is the new normal
	if late := handle(4, 90_000, 91_500*ms); late != 0 {
		t.Errorf("after a minute the old smallest delay still counts: %v", time.Duration(late))
	}
}

// The smallest delay of the last minute, by buckets, against the exact one.
func TestDelayWindowProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d delay
		type seen struct{ at, delay quota.Time }
		var all []seen
		now := quota.Time(0)
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			now += quota.Time(rapid.IntRange(0, 20_000).Draw(t, "gap")) * quota.Time(time.Millisecond)
			lag := quota.Time(rapid.IntRange(0, 500).Draw(t, "lag")) * quota.Time(time.Millisecond)
			appended := start + quota.Millis((now-lag)/quota.Time(time.Millisecond))
			d.observe(appended, now)
			all = append(all, seen{now, now - fromMillis(appended)})
			least, recent := quota.Time(math.MaxInt64), quota.Time(math.MaxInt64)
			for _, s := range all {
				if s.at > now-quota.Time(smallestWindow)-smallestBucket {
					least = min(least, s.delay)
				}
				if s.at > now-quota.Time(smallestWindow)+smallestBucket {
					recent = min(recent, s.delay)
				}
			}
			got := d.received(appended) - fromMillis(appended)
			if got < least || got > recent {
				t.Fatalf("smallest delay %d is outside %d..%d", got, least, recent)
			}
			if d.received(appended) > now {
				t.Fatal("received in the future")
			}
		}
	})
}

func TestMalformedRecordsAreSkippedAndCounted(t *testing.T) {
	bad := []*wirev1.Record{
		{IdLo: 1, Amount: math.NaN()},
		{IdLo: 1, Amount: 0},
		{IdLo: 1, Amount: 10, Remaining: math.Inf(-1)},
		{IdLo: 1, Amount: 10, Demand: -1},
		{IdLo: 1, Amount: 10, Level: proto.Float64(math.NaN())},
		{Amount: 10}, // names no counter
	}
	good := hotRecord(7)
	good.BlockedForMs = math.MaxUint64
	u, why := NewPartition(key, nil).Handle(encode(t, header(1, 1, 1), append(bad, good)...), start, 0)
	if why != "" || u.BadRecords != len(bad) || len(u.Records) != 1 {
		t.Fatalf("%q, %d bad, %d good", why, u.BadRecords, len(u.Records))
	}
	r := u.Records[0]
	if r.ID.Lo != 7 || !math.IsInf(r.Level, 1) || r.MeanCost != 1 || r.BlockedFor != maxWait {
		t.Errorf("record = %+v", r)
	}
}

func FuzzHandle(f *testing.F) {
	f.Add(encode(f, header(1, 1, 1), hotRecord(1)))
	f.Fuzz(func(t *testing.T, value []byte) {
		p := NewPartition(key, nil)
		if u, why := p.Handle(value, start, 1); (u == nil) == (why == "") {
			t.Errorf("%v, %q", u, why)
		}
		if _, why := p.Handle(encode(t, &wirev1.Header{LogId: p.LogID(), KeyFingerprint: key, Epoch: math.MaxInt64, Sequence: math.MaxUint64, Watermark: math.MaxInt64}),
			start, 2); why != "" && why != OldSequence {
			t.Errorf("stalled: %s", why)
		}
	})
}

func update(records ...*wirev1.Record) *Update {
	p := NewPartition(key, nil)
	b, _ := proto.Marshal(&wirev1.DecisionBatch{Header: header(1, 1, 1), Records: records})
	u, _ := p.Handle(b, start, 0)
	return u
}

func TestKnownKeepsHotAndBlockedOnly(t *testing.T) {
	k := NewKnown(10)
	cold := &wirev1.Record{IdHi: 1, IdLo: 2, Amount: 1000, Rate: 1000, Remaining: 900, Demand: 10}
	blocked := &wirev1.Record{IdHi: 1, IdLo: 3, Amount: 10, Rate: 1, Remaining: 9, BlockedForMs: 5}
	k.Put(4, update(hotRecord(1), cold, blocked))
	for lo, want := range map[uint64]bool{1: true, 2: false, 3: true} {
		if r, ok := k.Get(wirev1.ID{Hi: 1, Lo: lo}); ok != want || ok && (r.Partition != 4 || r.Appended != start) {
			t.Errorf("counter %d: known = %v %+v", lo, ok, r)
		}
	}
	cold.IdLo = 1 // the hot one has cooled down
	k.Put(4, update(cold))
	if _, ok := k.Get(wirev1.ID{Hi: 1, Lo: 1}); ok {
		t.Error("a counter that is hot no more is still remembered")
	}
	k.Forget(4)
	if n, _ := k.Len(); n != 0 {
		t.Errorf("%d records left of a forgotten partition", n)
	}
}

// Case 18: a bounded table, in which what matters most stays.
func TestCase18KnownIsBoundedAndTheFurthestFromItsLimitGoes(t *testing.T) {
	const bound = sampled // all are sampled, so the furthest goes
	k := NewKnown(bound)
	for i := uint64(1); i <= bound; i++ {
		r := hotRecord(i)
		r.Remaining = float64(i)
		k.Put(0, update(r))
	}
	near, far := hotRecord(100), hotRecord(101)
	near.Remaining, far.Remaining = -5, 50
	k.Put(0, update(near))
	k.Put(0, update(far))
	_, hasNear := k.Get(wirev1.ID{Hi: 1, Lo: 100})
	_, hasFurthest := k.Get(wirev1.ID{Hi: 1, Lo: bound})
	_, hasFar := k.Get(wirev1.ID{Hi: 1, Lo: 101})
	if n, dropped := k.Len(); n != bound || dropped != 2 || !hasNear || hasFurthest || hasFar {
		t.Errorf("%d records, %d dropped; near %v, furthest %v, far %v", n, dropped, hasNear, hasFurthest, hasFar)
	}
}
