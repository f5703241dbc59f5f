package store

import (
	"context"
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/weirproxy/weir/test/parts.spawnForever")) // one a process
}

// subject is what the contract speaks of; lose empties it as a restart without a file does.
type subject struct {
	Claim        func(context.Context, Owner) (Record, error)
	LoadCounters func(context.Context, int32, []wirev1.ID) ([]Saved, error)
	Flush        func(context.Context, *Flush) error
	lose         func()
}

func TestContractMemory(t *testing.T) {
	contract(t, func(*testing.T) subject {
		m := NewMemory()
		return subject{m.Claim, m.LoadCounters, m.Flush, m.Empty}
	})
}

func TestContractMiniredis(t *testing.T) {
	contract(t, func(t *testing.T) subject {
		s := miniredis.RunT(t)
		return onServer(t, s.Addr())
	})
}

// WEIR_TEST_REDIS names a server, host:port, whose data this test may delete.
func TestContractRedis(t *testing.T) {
	addr := os.Getenv("WEIR_TEST_REDIS")
	if addr == "" {
		t.Skip("WEIR_TEST_REDIS is not set")
	}
	contract(t, func(t *testing.T) subject {
		s := onServer(t, addr)
		s.lose()
		return s
	})
}

func onServer(t *testing.T, addr string) subject {
	r, err := New(Config{Addresses: []string{addr}, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return subject{r.Claim, r.LoadCounters, r.Flush, func() {
		err := r.do(t.Context(), "empty", func(ctx context.Context, c rueidis.Client) error {
			return c.Do(ctx, c.B().Flushall().Build()).Error()
		})
		if err != nil {
			t.Fatal(err)
		}
	}}
}

var (
	logA, logB = LogID{1}, LogID{2}
	c1, c2     = wirev1.ID{Hi: 1, Lo: 7}, wirev1.ID{Hi: 2, Lo: 1 << 63}
)

func owner(log LogID, epoch int64) Owner { return Owner{Partition: 3, LogID: log, Epoch: epoch} }

func whole(id wirev1.ID, through int64, v uint64) Counter {
	return Counter{
		ID: id, Through: through, TTL: time.Minute, Whole: true, Identity: []byte("\x01id\xff"),
		Fields: []Field{{Index: 0, Value: v}, {Index: 61, Value: 1<<64 - 1}},
	}
}

func contract(t *testing.T, fresh func(*testing.T) subject) {
	for name, test := range map[string]func(*testing.T, subject){
		"RoundTrip":              roundTrip,
		"OlderEpochIsFenced":     olderEpochIsFenced,
		"OlderFlushIsSuperseded": olderFlushIsSuperseded,
		"LossIsSeenAndRewritten": lossIsSeen,
		"NewLogTakesOver":        newLogTakesOver,
		"ManyChunks":             manyChunks,
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error is %v, want %v", err, target)
	}
}

func claim(t *testing.T, s subject, o Owner) Record {
	t.Helper()
	r, err := s.Claim(t.Context(), o)
	must(t, err)
	return r
}

func loaded(t *testing.T, s subject, id wirev1.ID) Saved {
	t.Helper()
	got, err := s.LoadCounters(t.Context(), 3, []wirev1.ID{id})
	must(t, err)
	return got[0]
}

func roundTrip(t *testing.T, s subject) {
	if r := claim(t, s, owner(logA, 5)); r != (Record{Offset: -1}) {
		t.Errorf("an empty store had the record %+v", r)
	}
	must(t, s.Flush(t.Context(), &Flush{
		Owner: owner(logA, 5), Sequence: 1, Offset: 40, Appended: 1000, OwnerTime: 1010, Clean: true,
		Counters: []Counter{whole(c1, 39, 12)},
	}))
	must(t, s.Flush(t.Context(), &Flush{
		Owner: owner(logA, 5), Sequence: 2, Known: 1, Offset: 41, Appended: 1001, OwnerTime: 1011, Clean: true,
		Counters: []Counter{{ID: c1, Through: 41, TTL: time.Minute, Fields: []Field{{Index: 0, Value: 13}, {Index: 2, Value: 1 << 53}}}},
	}))
	got := loaded(t, s, c1)
	byIndex(got.Fields)
	expect := Saved{
		ID: c1, Found: true, Identity: []byte("\x01id\xff"), LogID: logA, Through: 41,
		Fields: []Field{{Index: 0, Value: 13}, {Index: 2, Value: 1 << 53}, {Index: 61, Value: 1<<64 - 1}},
	}
	if !reflect.DeepEqual(got, expect) {
		t.Errorf("loaded %+v\nwant %+v", got, expect)
	}
	if got := loaded(t, s, c2); got.Found {
		t.Errorf("a counter never written is %+v", got)
	}
	r := claim(t, s, owner(logA, 6))
	if r != (Record{LogID: logA, Epoch: 5, Offset: 41, Appended: 1001, OwnerTime: 1011, Flush: 2, Clean: true}) {
		t.Errorf("the next owner finds %+v", r)
	}
	if r := claim(t, s, owner(logA, 6)); r.Offset != 41 || r.Clean {
		t.Errorf("a repeated claim finds %+v, want the offset kept", r)
	}
}

func byIndex(f []Field) { copy(f, mergeFields(f, nil)) }

func olderEpochIsFenced(t *testing.T, s subject) {
	claim(t, s, owner(logA, 5))
	must(t, s.Flush(t.Context(), &Flush{Owner: owner(logA, 5), Sequence: 1, Counters: []Counter{whole(c1, 1, 1)}}))
	claim(t, s, owner(logA, 9))
	late := &Flush{Owner: owner(logA, 5), Sequence: 2, Known: 1, Rewrite: true, Counters: []Counter{whole(c1, 1, 666)}}
	want(t, s.Flush(t.Context(), late), ErrFenced)
	if got := loaded(t, s, c1); got.Fields[0].Value == 666 {
		t.Error("an older owner's flush was written")
	}
	_, err := s.Claim(t.Context(), owner(logA, 5))
	want(t, err, ErrFenced)
}

func olderFlushIsSuperseded(t *testing.T, s subject) {
	claim(t, s, owner(logA, 5))
	must(t, s.Flush(t.Context(), &Flush{Owner: owner(logA, 5), Sequence: 2, Counters: []Counter{whole(c1, 1, 2)}}))
	late := &Flush{Owner: owner(logA, 5), Sequence: 1, Counters: []Counter{whole(c1, 1, 666)}}
	want(t, s.Flush(t.Context(), late), ErrSuperseded)
	if got := loaded(t, s, c1); got.Fields[0].Value != 2 {
		t.Errorf("a late chunk of an older flush was written: %+v", got)
	}
}

func lossIsSeen(t *testing.T, s subject) {
	claim(t, s, owner(logA, 5))
	must(t, s.Flush(t.Context(), &Flush{Owner: owner(logA, 5), Sequence: 1, Counters: []Counter{whole(c1, 1, 1), whole(c2, 1, 1)}}))
	s.lose()
	partial := Counter{ID: c1, Through: 2, TTL: time.Minute, Fields: []Field{{Index: 0, Value: 2}}}
	want(t, s.Flush(t.Context(), &Flush{Owner: owner(logA, 5), Sequence: 2, Known: 1, Counters: []Counter{partial}}), ErrLost)
	if got := loaded(t, s, c1); got.Found {
		t.Errorf("part of a counter was written to an emptied store: %+v", got)
	}
	must(t, s.Flush(t.Context(), &Flush{
		Owner: owner(logA, 5), Sequence: 3, Known: 1, Rewrite: true, Counters: []Counter{whole(c1, 2, 2), whole(c2, 2, 1)},
	}))
	must(t, s.Flush(t.Context(), &Flush{Owner: owner(logA, 5), Sequence: 4, Known: 3, Counters: []Counter{partial}}))
	if got := loaded(t, s, c2); !got.Found || string(got.Identity) != "\x01id\xff" {
		t.Errorf("after the rewrite c2 is %+v", got)
	}
}

// A topic made anew: offsets of the old log mean nothing, any epoch takes over, owner time stays,
// and owners under the old log are refused.
func newLogTakesOver(t *testing.T, s subject) {
	claim(t, s, owner(logA, 500))
	must(t, s.Flush(t.Context(), &Flush{
		Owner: owner(logA, 500), Sequence: 1, Offset: 600, Appended: 10, OwnerTime: 77, Counters: []Counter{whole(c1, 600, 1)},
	}))
	if r := claim(t, s, owner(logB, 0)); r.LogID != logA || r.OwnerTime != 77 {
		t.Errorf("the record before is %+v", r)
	}
	want(t, s.Flush(t.Context(), &Flush{Owner: owner(logA, 500), Sequence: 2, Known: 1}), ErrFenced)
	if got := loaded(t, s, c1); got.LogID != logA || got.Through != 600 || !got.Found {
		t.Errorf("the counter is %+v, want it kept under the old log", got)
	}
	if r := claim(t, s, owner(logB, 0)); r.Offset != -1 || r.OwnerTime != 77 || r.LogID != logB {
		t.Errorf("a repeated claim finds %+v, want no offset of the old log", r)
	}
}

func manyChunks(t *testing.T, s subject) {
	claim(t, s, owner(logA, 5))
	var f Flush
	f.Owner, f.Sequence, f.Offset = owner(logA, 5), 1, 9
	var ids []wirev1.ID
	for i := range 2*chunkCounters + 1 {
		ids = append(ids, wirev1.ID{Hi: uint64(i), Lo: 5})
		f.Counters = append(f.Counters, whole(ids[i], 9, uint64(i)))
	}
	must(t, s.Flush(t.Context(), &f))
	f.Sequence, f.Rewrite = 2, true
	must(t, s.Flush(t.Context(), &f))
	got, err := s.LoadCounters(t.Context(), 3, ids)
	must(t, err)
	for i := range got {
		byIndex(got[i].Fields)
		if got[i].ID != ids[i] || !got[i].Found || got[i].Fields[0].Value != uint64(i) {
			t.Fatalf("counter %d is %+v", i, got[i])
		}
	}
	if r := claim(t, s, owner(logA, 6)); r.Offset != 9 || r.Flush != 2 {
		t.Errorf("the record is %+v", r)
	}
}
