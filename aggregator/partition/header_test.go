package partition

import (
	"bytes"
	"testing"
	"time"
)

// Every header says whose it is, of which log, and at which periods the installation works.
func TestHeadersNameKeyLogAndPeriods(t *testing.T) {
	w := liveWorld(t)
	h := w.step(100 * time.Millisecond).GetHeader()
	if h.KeyFingerprint != w.keys.Fingerprint() || !bytes.Equal(h.LogId, w.logID[:]) || h.FlushMs == 0 || h.TickMs == 0 {
		t.Errorf("header %v", h)
	}
}

// An owner that hands over sends a last header, although no tick is due, which includes all that it read.
func TestTheLastHeaderIncludesAllThatWasRead(t *testing.T) {
	w := liveWorld(t)
	for w.tick() != nil {
	}
	p := w.pod("shop/x", 1)
	p.admit(identityOf("a", time.Second), 3)
	p.deliver()
	w.read(1)
	if b := w.own.Tick(w.now); b != nil {
		t.Fatalf("a tick was due: the test proves nothing: %v", b)
	}
	b := w.own.Last(w.now)
	if b == nil || b.Header.Watermark != int64(len(w.log)-1) {
		t.Errorf("the last header is %v, want watermark %d", b.GetHeader(), len(w.log)-1)
	}
}
