package bus

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/internal/embedded"
)

// taped reads into a tape: v:VALUE, caught:PARTITION, gap:FROM-TO, recreated.
func taped(c *Client, topic string, from map[int32]From) (*Reader, *tape) {
	got := &tape{}
	return NewReader(c, ReaderConfig{
		Topic: topic, Partitions: from,
		Handle:     func(m Message) { got.add("v:%s", m.Value) },
		CaughtUp:   func(p int32) { got.add("caught:%d", p) },
		Gap:        func(_ int32, from, to int64) { got.add("gap:%d-%d", from, to) },
		Recreated:  func(int32, TopicID) { got.add("recreated") },
		CheckTopic: 20 * time.Millisecond,
	}), got
}

func TestReaderCatchesUpThenFollows(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top := topic(t, c, 2)
		mustPut(t, c, top, 0, "a", "b")
		r, got := taped(c, top, map[int32]From{0: {}})
		run(t, r.Run)
		eventually(t, "it is caught up", func() bool { return got.has("caught:0") })
		mustPut(t, c, top, 0, "c")
		eventually(t, "c is read", func() bool { return got.has("v:c") })
		if want := "v:a v:b caught:0 v:c"; got.String() != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestReaderIsCaughtUpOnAnEmptyPartition(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top := topic(t, c, 3)
		r, got := taped(c, top, map[int32]From{0: {}, 1: {Newest: true}, 2: {Age: time.Minute}})
		run(t, r.Run)
		eventually(t, "all are caught up", func() bool { return got.has("caught:0") && got.has("caught:1") && got.has("caught:2") })
	})
}

func TestReaderStartsWhereFromSays(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top := topic(t, c, 1)
		mustPut(t, c, top, 0, "a", "b")
		time.Sleep(300 * time.Millisecond) // stamps must differ by more than Age below
		acks := mustPut(t, c, top, 0, "c", "d")
		for _, tc := range []struct {
			from From
			want string
		}{
			{From{}, "v:a v:b v:c v:d caught:0"},
			{From{Set: true, Offset: 1}, "v:b v:c v:d caught:0"},
			{From{Set: true, Offset: 4}, "caught:0"},
			{From{Newest: true}, "caught:0"},
			{From{At: acks[0].Appended}, "v:c v:d caught:0"},
			{From{At: acks[1].Appended.Add(time.Hour)}, "caught:0"},
			{From{Age: 200 * time.Millisecond}, "v:c v:d caught:0"},
			{From{Age: time.Hour}, "v:a v:b v:c v:d caught:0"},
		} {
			r, got := taped(c, top, map[int32]From{0: tc.from})
			stop := run(t, r.Run)
			eventually(t, "it is caught up", func() bool { return got.has("caught:0") })
			stop()
			if got.String() != tc.want {
				t.Errorf("%+v: got %q, want %q", tc.from, got, tc.want)
			}
		}
	})
}

func TestReaderTellsOfAGapAndGoesOnAtTheOldest(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top := topic(t, c, 1)
		mustPut(t, c, top, 0, "a", "b", "c")
		err := c.admin(t.Context(), func(a sarama.ClusterAdmin) error { return a.DeleteRecords(top, map[int32]int64{0: 2}) })
		if err != nil {
			t.Fatal(err)
		}
		r, got := taped(c, top, map[int32]From{0: {Set: true, Offset: 0}})
		run(t, r.Run)
		eventually(t, "it is caught up", func() bool { return got.has("caught:0") })
		if want := "gap:0-2 v:c caught:0"; got.String() != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestReaderBeyondTheEndIsAGapToo(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top := topic(t, c, 1)
		mustPut(t, c, top, 0, "a")
		r, got := taped(c, top, map[int32]From{0: {Set: true, Offset: 100}})
		run(t, r.Run)
		eventually(t, "a is read", func() bool { return got.has("v:a") && got.has("caught:0") })
		if !got.has("gap:100-0") {
			t.Fatalf("got %q", got)
		}
	})
}

func TestReaderNoticesATopicMadeAnew(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top := topic(t, c, 1)
		mustPut(t, c, top, 0, "a", "b")
		r, got := taped(c, top, map[int32]From{0: {}})
		run(t, r.Run)
		eventually(t, "it is caught up", func() bool { return got.has("caught:0") })
		before, err := c.TopicID(t.Context(), top)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.admin(t.Context(), func(a sarama.ClusterAdmin) error { return a.DeleteTopic(top) }); err != nil {
			t.Fatal(err)
		}
		makeTopic(t, c, top, 1)
		// as many records as before: the offset alone would not tell
		mustPut(t, c, top, 0, "x", "y")
		eventually(t, "the new records are read", func() bool { return got.has("v:y") })
		if want := "v:a v:b caught:0 recreated v:x v:y"; got.String() != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		after, err := c.TopicID(t.Context(), top)
		if err != nil || after == before || after == (TopicID{}) {
			t.Fatalf("topic id %v, before %v, err %v", after, before, err)
		}
	})
}

// The caller knows the topic by an id that it no longer has: it is told before anything is read.
func TestReaderNoticesThatTheTopicIsNotTheCallers(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top := topic(t, c, 1)
		mustPut(t, c, top, 0, "a")
		id, err := c.TopicID(t.Context(), top)
		if err != nil {
			t.Fatal(err)
		}
		for known, want := range map[TopicID]string{{1, 2, 3}: "recreated v:a caught:0", id: "v:a caught:0"} {
			r, got := taped(c, top, map[int32]From{0: {}})
			r.cfg.ID = known
			run(t, r.Run)
			eventually(t, "it is caught up", func() bool { return got.has("caught:0") })
			if got.String() != want {
				t.Errorf("known as %v: got %q, want %q", known, got, want)
			}
		}
	})
}

func TestReaderWaitsForATopicThatIsNotThereYet(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top := name(t, "late")
		r, got := taped(c, top, map[int32]From{0: {}})
		states := &tape{}
		r.cfg.State = func(_ int32, reason string) { states.add("[%s]", reason) }
		run(t, r.Run)
		eventually(t, "it says why it waits", func() bool { return states.String() != "" })
		makeTopic(t, c, top, 1)
		mustPut(t, c, top, 0, "a")
		eventually(t, "a is read", func() bool { return got.has("v:a") })
		// Real brokers may say in between that they do not lead the new partition yet.
		first := fmt.Sprintf("[topic %s does not exist: make the topics with `weir-aggregator topics ensure`] ", top)
		if all := states.String(); !strings.HasPrefix(all, first) || !strings.HasSuffix(all, " []") {
			t.Fatalf("states %q, want %q first and none last", all, first)
		}
	})
}

// Each record is handled once and in order, and CaughtUp comes once, whatever fails meanwhile.
func TestReaderSurvivesErrorsWithoutRepeatOrLoss(t *testing.T) {
	k, c := fake(t)
	top := topic(t, c, 1)
	k.Cluster().Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: top, Err: kerr.NotLeaderForPartition, Count: 2},
		kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: top, Err: kerr.UnknownLeaderEpoch, Count: 1},
	)
	mustPut(t, c, top, 0, "0", "1")
	r, got := taped(c, top, map[int32]From{0: {}})
	failures := 0
	r.cfg.Error = func(int32, error) { failures++ }
	stop := run(t, r.Run)
	eventually(t, "it is caught up", func() bool { return got.has("caught:0") })
	w := NewWriter(c, WriterConfig{})
	defer w.Close()
	want := "v:0 v:1 caught:0"
	for i := 2; i < 40; i++ {
		if i%10 == 0 {
			k.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: top, Err: kerr.KafkaStorageError})
			cut(k, int16(kmsg.Fetch))
		}
		if a := put(t, w, top, 0, fmt.Sprint(i)); a.Err != nil {
			t.Fatal(a.Err)
		}
		want += fmt.Sprintf(" v:%d", i)
	}
	eventually(t, "the last record is read", func() bool { return got.has("v:39") })
	stop()
	if got.String() != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if failures == 0 {
		t.Fatal("no failure was told of; the faults did not work")
	}
}

func TestReaderGoesOnAfterTheBrokersReturn(t *testing.T) {
	k, c := fake(t)
	top := topic(t, c, 1)
	mustPut(t, c, top, 0, "a")
	r, got := taped(c, top, map[int32]From{0: {}})
	states := &tape{}
	r.cfg.State = func(_ int32, reason string) { states.add("up=%v", reason == "") }
	run(t, r.Run)
	eventually(t, "it is caught up", func() bool { return got.has("caught:0") })
	up := down(k)
	eventually(t, "it says that it cannot read", func() bool { return states.has("up=false") })
	up()
	mustPut(t, c, top, 0, "b")
	eventually(t, "b is read", func() bool { return got.has("v:b") })
	if want := "v:a caught:0 v:b"; got.String() != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if want := "up=false up=true"; states.String() != want {
		t.Fatalf("states %q, want %q", states, want)
	}
}

// cut closes the connection of the next request of a kind.
func cut(k interface{ Cluster() *kfake.Cluster }, key int16) {
	k.Cluster().ControlKey(key, func(kmsg.Request) (kmsg.Response, error, bool) {
		return nil, fmt.Errorf("cut"), true
	})
}

// down makes the broker close each connection that asks for anything, until up is called.
func down(k interface{ Cluster() *kfake.Cluster }) (up func()) {
	over := make(chan struct{})
	k.Cluster().Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		select {
		case <-over:
			k.Cluster().DropControl()
			return nil, nil, false
		default:
			k.Cluster().KeepControl()
			return nil, fmt.Errorf("down"), true
		}
	})
	return func() { close(over) }
}

// Stopping does not wait for a fetch that waits for records.
func TestReaderStopsAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top := topic(t, c, 1)
		r, got := taped(c, top, map[int32]From{0: {}})
		r.cfg.MaxWait = time.Hour
		stop := run(t, r.Run)
		eventually(t, "it is caught up", func() bool { return got.has("caught:0") })
		stop() // fails after 30 s
	})
}

// A broker that takes a fetch and never answers is left after MaxWait and the request time-out.
func TestReaderLeavesASilentBroker(t *testing.T) {
	k, c := fake(t)
	top := topic(t, c, 1)
	mustPut(t, c, top, 0, "a")
	c.cfg.RequestTimeout = 50 * time.Millisecond
	k.Cluster().ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) { return nil, nil, true })
	r, got := taped(c, top, map[int32]From{0: {}})
	r.cfg.MaxWait = 10 * time.Millisecond
	run(t, r.Run)
	eventually(t, "a is read", func() bool { return got.has("v:a") })
}

// A network that carries no large answer within the time-out is read in small ones, and in large ones once it can.
func TestReaderFitsFetchesToASlowNetwork(t *testing.T) {
	k, c := fake(t)
	top := topic(t, c, 1)
	mustPut(t, c, top, 0, strings.Repeat("a", 20_000), "b")
	c.cfg.RequestTimeout = 50 * time.Millisecond
	var slow atomic.Bool
	var largest atomic.Int32
	slow.Store(true)
	k.Cluster().ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster().KeepControl()
		asked := r.(*kmsg.FetchRequest).Topics[0].Partitions[0].PartitionMaxBytes
		largest.Store(max(largest.Load(), asked))
		return nil, nil, slow.Load() && asked > 40_000 // never answered
	})
	r, got := taped(c, top, map[int32]From{0: {}})
	r.cfg.MaxWait = 5 * time.Millisecond
	run(t, r.Run)
	eventually(t, "all is read", func() bool { return got.has("v:b") })
	slow.Store(false)
	largest.Store(0)
	eventually(t, "fetches are as large as they may be", func() bool { return largest.Load() == 1<<20 })
}

// Compaction may leave nothing at the end (a real broker removes old tombstones): the last offsets are
// then never read, and must not be waited for.
func TestReaderIsCaughtUpWhereCompactionEmptiedTheEnd(t *testing.T) {
	k, c := fake(t)
	top := topic(t, c, 1)
	mustPut(t, c, top, 0, "a", "b", "c")
	k.Cluster().ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster().KeepControl()
		req := r.(*kmsg.FetchRequest)
		if req.Topics[0].Partitions[0].FetchOffset > 0 {
			return nil, nil, true // no answer: what is said of the first offset must do
		}
		part := kmsg.NewFetchResponseTopicPartition()
		part.HighWatermark, part.PreferredReadReplica, part.RecordBatches = 3, -1, []byte{}
		answer := req.ResponseKind().(*kmsg.FetchResponse)
		answer.Topics = []kmsg.FetchResponseTopic{{Topic: top, Partitions: []kmsg.FetchResponseTopicPartition{part}}}
		return answer, nil, true
	})
	r, got := taped(c, top, map[int32]From{0: {}})
	run(t, r.Run)
	eventually(t, "it is caught up", func() bool { return got.has("caught:0") })
	if want := "caught:0"; got.String() != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// With a rack, reading goes to the replica that the leader names, and back to the leader when that fails.
func TestReaderReadsFromTheReplicaOfItsRack(t *testing.T) {
	k, err := embedded.StartKafka("", kfake.NumBrokers(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	c := dial(t, Config{Brokers: []string{k.Addr()}, RackID: "here"})
	top := topic(t, c, 1)
	leader := k.Cluster().LeaderFor(top, 0)
	follower := 1 - leader
	k.Cluster().SetFollowers(top, 0, []int32{follower})
	var served atomic.Int64
	k.Cluster().ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster().KeepControl()
		req := r.(*kmsg.FetchRequest)
		if k.Cluster().CurrentNode() != leader || req.Rack != "here" {
			served.Add(1)
			return nil, nil, false
		}
		part := kmsg.NewFetchResponseTopicPartition()
		part.HighWatermark, part.PreferredReadReplica, part.RecordBatches = 100, follower, []byte{}
		answer := req.ResponseKind().(*kmsg.FetchResponse)
		answer.Topics = []kmsg.FetchResponseTopic{{Topic: top, Partitions: []kmsg.FetchResponseTopicPartition{part}}}
		return answer, nil, true
	})
	mustPut(t, c, top, 0, "a", "b")
	r, got := taped(c, top, map[int32]From{0: {}})
	run(t, r.Run)
	eventually(t, "b is read", func() bool { return got.has("v:b") })
	k.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Nodes: []int32{follower}, Err: kerr.ReplicaNotAvailable})
	mustPut(t, c, top, 0, "c")
	eventually(t, "c is read", func() bool { return got.has("v:c") })
	if want := "v:a v:b caught:0 v:c"; got.String() != want || served.Load() == 0 {
		t.Errorf("got %q, want %q; the follower served %d fetches", got, want, served.Load())
	}
}

// What batch.add takes from records: those at or above the offset asked for, in order, and the offset after the last.
func TestBatchTakesEachRecordFromTheOffsetOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(0, 100).Draw(t, "first")
		deltas := rapid.SliceOfNDistinct(rapid.Int64Range(0, 50), 1, 10, rapid.ID[int64]).Draw(t, "deltas")
		slices.Sort(deltas)
		gap := rapid.Int64Range(0, 5).Draw(t, "compacted away after the last")
		offset := rapid.Int64Range(first, first+deltas[len(deltas)-1]).Draw(t, "offset")
		rb := &sarama.RecordBatch{FirstOffset: first, LastOffsetDelta: int32(deltas[len(deltas)-1] + gap),
			Control: rapid.Bool().Draw(t, "control")}
		var want []int64
		for _, d := range deltas {
			rb.Records = append(rb.Records, &sarama.Record{OffsetDelta: d})
			if first+d >= offset && !rb.Control {
				want = append(want, first+d)
			}
		}
		b := batch{next: offset}
		b.add("t", 0, offset, rb)
		var got []int64
		for _, m := range b.messages {
			got = append(got, m.Offset)
		}
		if !slices.Equal(got, want) || b.next != first+deltas[len(deltas)-1]+gap+1 {
			t.Fatalf("got %v next %d, want %v", got, b.next, want)
		}
	})
}
