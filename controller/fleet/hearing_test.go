package fleet

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
)

// ear is a Fleet that is told what its reader would tell it, in the bubble's time, which is the broker's too.
type ear struct {
	*Fleet
	t *testing.T
}

// listening runs f with a Fleet whose reader begins.
func listening(t *testing.T, f func(e ear)) {
	synctest.Test(t, func(t *testing.T) {
		e := ear{New(Config{Topic: "weir.status", Fingerprint: key, Log: zap.NewNop(), Pause: time.Millisecond}), t}
		time.Sleep(time.Second)
		e.state("")
		f(e)
	})
}

// gets a pod's record that was appended some time ago.
func (e ear) gets(pod string, ago time.Duration) {
	e.t.Helper()
	value, err := proto.Marshal(status(func(s *wirev1.PodStatus) { s.Pod = pod }))
	if err != nil {
		e.t.Fatal(err)
	}
	e.handle(bus.Message{Topic: "weir.status", Key: []byte(pod), Value: value, Appended: time.Now().Add(-ago)})
}

// is asserts what is said of a pod, and what is waited for.
func (e ear) is(what, pod string, stale bool, waiting string) {
	e.t.Helper()
	r, ok := e.Report(pod, "", shop("orders"))
	if w := e.Waiting(); !ok || r.Stale != stale || (w == "") != (waiting == "") || !strings.Contains(w, waiting) {
		e.t.Errorf("%s: %s is known %v, stale %v, and %q is waited for; want stale %v and %q", what, pod, ok, r.Stale, w, stale, waiting)
	}
}

// tells reports whether all is to be looked at by now.
func (e ear) tells() bool {
	ctx, cancel := context.WithTimeout(e.t.Context(), 10*time.Millisecond)
	defer cancel()
	b, err := e.Changes().Next(ctx)
	return err == nil && b.All
}

// Case 25 at a start: what a sidecar said before counts only once it is known how long ago that was.
func TestAtAStartNothingIsFresh(t *testing.T) {
	listening(t, func(e ear) {
		e.gets("shop/a", 3*time.Hour)
		e.gets("shop/b", 3*time.Hour-5*time.Second)
		e.is("before the end", "shop/b", true, "not yet read")
		if !e.caughtUp() || !e.tells() {
			t.Error("at the end nobody is told")
		}
		e.is("all were cut off for 3 h", "shop/b", true, "no sidecar has been heard")
		time.Sleep(29 * time.Second)
		e.tick(e.now())
		e.is("29 s later", "shop/b", true, "no sidecar has been heard")
		if e.tells() {
			t.Error("all are told of, though nothing is new")
		}
		time.Sleep(2 * time.Second)
		e.tick(e.now())
		e.is("they are silent", "shop/b", true, "")
		if !e.tells() {
			t.Error("that they are silent is not told")
		}
		e.gets("shop/a", 0)
		e.is("heard again", "shop/a", false, "")
		e.is("the other", "shop/b", true, "")
	})
	listening(t, func(e ear) {
		e.gets("shop/a", 3*time.Hour)
		e.gets("shop/b", 5*time.Second)
		e.caughtUp()
		e.tells()
		time.Sleep(time.Second)
		e.gets("shop/c", 0)
		e.is("the first is heard", "shop/c", false, "")
		e.is("so the time is known", "shop/b", false, "")
		e.is("and of the long gone", "shop/a", true, "")
		if !e.tells() {
			t.Error("that ages are known is not told")
		}
	})
	listening(t, func(e ear) {
		e.caughtUp()
		if w := e.Waiting(); w != "" {
			t.Errorf("where no sidecar was ever heard, %q is waited for", w)
		}
	})
}

// When the topic is back, its readers are so before its writers: for 30 s nobody is silent. What was said while
// nobody listened is as old as it is.
func TestAfterAnOutageSidecarsGetTheirTime(t *testing.T) {
	listening(t, func(e ear) {
		e.caughtUp()
		e.gets("shop/a", 0)
		e.gets("shop/b", 0)
		e.state("no broker answers")
		time.Sleep(time.Hour)
		e.is("away", "shop/a", true, "no broker answers")
		e.state("")
		e.tells()
		e.is("back", "shop/a", true, "until a moment ago")
		e.gets("shop/b", 58*time.Minute)
		e.is("what was said meanwhile", "shop/b", true, "until a moment ago")
		e.caughtUp()
		e.is("up with the end", "shop/b", true, "until a moment ago")
		time.Sleep(20 * time.Second)
		e.gets("shop/a", 0)
		e.is("heard again", "shop/a", false, "until a moment ago")
		time.Sleep(11 * time.Second)
		e.tick(e.now())
		e.is("never heard again", "shop/b", true, "")
		if !e.tells() {
			t.Error("that one is silent is not told")
		}
		e.is("the other", "shop/a", false, "")
	})
}

// What comes after a long reading was appended during it, not a moment ago.
func TestTheEndIsMetOnlyWhereReadingWasQuick(t *testing.T) {
	var h hearing
	h.begin(time.Second)
	h.record(10 * time.Second) // a connection may take its time
	if h.record(11*time.Second) || !h.caughtUp(11*time.Second) || !h.record(12*time.Second) {
		t.Errorf("a second of reading: %+v", h)
	}
	h.begin(20 * time.Second)
	h.record(21 * time.Second)
	if h.caughtUp(80*time.Second) || h.record(80*time.Second) || h.settled(109*time.Second) {
		t.Errorf("a minute of reading: %+v", h)
	}
	if !h.caughtUp(81*time.Second) || h.settled(110*time.Second) || !h.settled(112*time.Second) {
		t.Errorf("a second more: %+v", h)
	}
}

func TestPodsAreDroppedOnlyWhereTheyCouldBeHeard(t *testing.T) {
	listening(t, func(e ear) {
		e.caughtUp()
		e.gets("shop/a", 0)
		e.state("no broker answers")
		time.Sleep(2 * time.Hour)
		e.tick(e.now())
		e.is("away", "shop/a", true, "no broker answers")
		e.state("")
		e.caughtUp()
		time.Sleep(31 * time.Second)
		e.tick(e.now())
		if _, known := e.Report("shop/a", "", shop("orders")); known {
			t.Error("a pod that is silent for two hours is still there")
		}
	})
}
