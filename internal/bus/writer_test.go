package bus

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestWriterAcknowledgesWithOffsetAndAppendTime(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top := topic(t, c, 2, "message.timestamp.type", "LogAppendTime")
		acks := mustPut(t, c, top, 1, "a", "b", "c")
		r, got := taped(c, top, map[int32]From{1: {}})
		var read []time.Time
		r.cfg.Handle = func(m Message) { read = append(read, m.Appended); got.add("%d", m.Offset) }
		stop := run(t, r.Run)
		eventually(t, "it is caught up", func() bool { return got.has("caught:1") })
		stop()
		for i, a := range acks {
			if a.Offset != int64(i) || a.Appended.UnixMilli() != read[i].UnixMilli() || a.Took <= 0 {
				t.Errorf("record %d: ack %+v, the log says %v", i, a, read[i])
			}
		}
	})
}

func TestWriterTakesOneRecordALaneUntilItIsAcknowledged(t *testing.T) {
	k, c := fake(t)
	top, deep := topic(t, c, 2), topic(t, c, 1)
	release := hold(k, kmsg.Produce)
	w := NewWriter(c, WriterConfig{Depth: map[string]int{deep: 3}})
	defer w.Close()
	var done atomic.Int32
	count := func(a Ack) {
		if a.Err != nil {
			t.Error(a.Err)
		}
		done.Add(1)
	}
	send := func(topic string, p int32) error { return w.Send(topic, p, nil, []byte("x"), count) }
	got := fmt.Sprint(send(top, 0), send(top, 0), send(top, 1), send(deep, 0), send(deep, 0), send(deep, 0), send(deep, 0))
	want := fmt.Sprint(nil, ErrBusy, nil, nil, nil, nil, ErrBusy)
	if got != want {
		t.Errorf("sends gave %s, want %s", got, want)
	}
	release()
	eventually(t, "all taken are acknowledged", func() bool { return done.Load() == 5 })
	if err := send(top, 0); err != nil {
		t.Errorf("the lane is free again, yet %v", err)
	}
	eventually(t, "it is acknowledged", func() bool { return done.Load() == 6 })
}

func TestWriterKeepsTheOrderOfADeepLane(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		top := topic(t, c, 1)
		w := NewWriter(c, WriterConfig{Depth: map[string]int{top: 100}})
		defer w.Close()
		var all sync.WaitGroup
		var offsets []int64
		for i := range 100 {
			all.Add(1)
			err := w.Send(top, 0, []byte("k"), fmt.Appendf(nil, "%d", i), func(a Ack) { offsets = append(offsets, a.Offset); all.Done() })
			if err != nil {
				t.Fatal(err)
			}
		}
		all.Wait()
		for i, o := range offsets {
			if o != int64(i) {
				t.Fatalf("record %d is at offset %d", i, o)
			}
		}
	})
}

// CASES 17: brokers down. Sends neither block nor pile up, each is answered, and the writer ends in time.
func TestCase17BrokersDownNothingBlocksNorGrows(t *testing.T) {
	k, c := fake(t)
	top := topic(t, c, 4)
	c.cfg.ProduceTimeout = 100 * time.Millisecond
	states := &tape{}
	w := NewWriter(c, WriterConfig{DrainTimeout: 50 * time.Millisecond, State: func(r string) { states.add("up=%v", r == "") }})
	mustPut(t, c, top, 0, "before")
	k.Close()
	var taken, answered, failed atomic.Int32
	for range 2000 {
		for p := range int32(4) {
			err := w.Send(top, p, nil, make([]byte, 1000), func(a Ack) {
				answered.Add(1)
				if a.Err != nil {
					failed.Add(1)
				}
			})
			switch {
			case err == nil:
				taken.Add(1)
			case !errors.Is(err, ErrBusy):
				t.Fatal(err)
			}
		}
		// a lane takes the next record just before it answers for the last
		if n := taken.Load() - answered.Load(); n > 2*4 {
			t.Fatalf("%d records are held by 4 lanes", n)
		}
	}
	w.Close()
	if taken.Load() != answered.Load() || taken.Load() != failed.Load() || taken.Load() < 4 {
		t.Errorf("taken %d, answered %d, failed %d", taken.Load(), answered.Load(), failed.Load())
	}
	if err := w.Send(top, 0, nil, nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if !states.has("up=false") || states.has("up=true") {
		t.Errorf("states %q", states)
	}
}

// CASES 17: a broker that takes records and never answers.
func TestCase17SilentBrokerEveryRecordIsAnsweredOnce(t *testing.T) {
	k, c := fake(t)
	top := topic(t, c, 1)
	c.cfg.ProduceTimeout = 50 * time.Millisecond
	c.cfg.RequestTimeout = time.Hour // no other time-out helps
	k.Cluster().ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster().KeepControl()
		return nil, nil, true // handled, no response
	})
	w := NewWriter(c, WriterConfig{DrainTimeout: time.Hour})
	for range 3 {
		if a := put(t, w, top, 0, "x"); a.Err == nil || errors.Is(a.Err, ErrClosed) {
			t.Fatalf("acknowledged by nobody: %+v", a)
		}
	}
	w.Close()
}

func TestCase17StopWithASilentBrokerFailsWhatIsLeft(t *testing.T) {
	k, c := fake(t)
	top := topic(t, c, 1)
	c.cfg.ProduceTimeout = time.Minute
	seen := make(chan struct{}, 1)
	k.Cluster().ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		seen <- struct{}{}
		return nil, nil, true
	})
	w := NewWriter(c, WriterConfig{Depth: map[string]int{top: 3}, DrainTimeout: time.Millisecond})
	got := make(chan Ack, 3)
	for range 3 {
		if err := w.Send(top, 0, nil, []byte("x"), func(a Ack) { got <- a }); err != nil {
			t.Fatal(err)
		}
	}
	<-seen
	w.Close()
	for range 3 {
		if a := <-got; !errors.Is(a.Err, ErrClosed) {
			t.Errorf("got %+v", a)
		}
	}
}

func TestWriterDrainsWhenStopped(t *testing.T) {
	k, c := fake(t)
	top := topic(t, c, 1)
	release := hold(k, kmsg.Produce)
	w := NewWriter(c, WriterConfig{Depth: map[string]int{top: 3}, DrainTimeout: time.Minute})
	stop := run(t, w.Run)
	got := make(chan Ack, 3)
	for range 3 {
		if err := w.Send(top, 0, nil, []byte("x"), func(a Ack) { got <- a }); err != nil {
			t.Fatal(err)
		}
	}
	go release()
	stop()
	for i := range 3 {
		if a := <-got; a.Err != nil || a.Offset != int64(i) {
			t.Errorf("got %+v", a)
		}
	}
}

func TestWriterReportsEachFailureAndFindsTheNewLeader(t *testing.T) {
	k, c := fake(t)
	top := topic(t, c, 1)
	w := NewWriter(c, WriterConfig{})
	defer w.Close()
	for _, e := range []*kerr.Error{kerr.NotLeaderForPartition, kerr.NotEnoughReplicas, kerr.KafkaStorageError} {
		k.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: top, Err: e})
		if a := put(t, w, top, 0, "x"); a.Err == nil {
			t.Errorf("%v was not reported", e)
		}
	}
	cut(k, int16(kmsg.Produce))
	if a := put(t, w, top, 0, "x"); a.Err == nil {
		t.Error("a cut connection was not reported")
	}
	if _, _, err := k.Cluster().AddNode(-1, 0); err == nil { // a second broker takes over
		if err := k.Cluster().MoveTopicPartition(top, 0, 1); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "records go through again", func() bool { return put(t, w, top, 0, "x").Err == nil })
}

func TestWriterRefusesWhatIsTooLarge(t *testing.T) {
	_, c := fake(t)
	w := NewWriter(c, WriterConfig{MaxBytes: 10})
	defer w.Close()
	if err := w.Send("t", 0, []byte("12345"), []byte("678901"), nil); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
}

// hold makes the broker keep its answers to a kind of request until release is called.
func hold(k interface{ Cluster() *kfake.Cluster }, key kmsg.Key) (release func()) {
	open := make(chan struct{})
	k.Cluster().ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
		select {
		case <-open:
			k.Cluster().DropControl()
			return nil, nil, false
		default:
		}
		k.Cluster().KeepControl()
		k.Cluster().SleepControl(func() { <-open })
		return nil, nil, false
	})
	return sync.OnceFunc(func() { close(open) })
}
