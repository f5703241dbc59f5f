package unary

import (
	"errors"
	"net"
	"os"
	"time"
)

// wire is a connection's two ends. Writes are gathered, and go out before a read asks the system for
// bytes: all that could be answered with what was read goes out at once. Deadlines are armed only now and
// then, since arming costs as much as a short answer does.
type wire struct {
	nc    net.Conn
	idle  time.Duration // for a frame to begin, and for one to end
	slow  time.Duration // for a write
	out   []byte
	err   error // of a write, for good
	waker waker

	fresh     bool // no read was needed yet for the frame that is next: the deadline may move
	begun     bool // bytes of the frame that is next, or of a header block, are here
	fixed     bool // the read deadline moves no more
	readArmed time.Time
	sendArmed time.Time
}

// waker is asked when a read finds its deadline passed, or may have missed one set from elsewhere.
type waker interface {
	armed()         // the idle timeout was moved
	woken() bool    // something else than the idle timeout may have ended the wait, and is dealt with
	expired() error // the idle timeout has passed; nil: wait on
}

// next says that a frame is about to be read, and whether bytes of it, or of what it belongs to, are here.
func (w *wire) next(begun bool) { w.fresh, w.begun = true, begun }

// Read implements io.Reader for the buffer of input.
func (w *wire) Read(p []byte) (int, error) {
	for {
		if err := w.flush(); err != nil {
			return 0, err
		}
		w.arm()
		if w.waker.woken() { // after arming: whoever sets the deadline says first why
			continue
		}
		n, err := w.nc.Read(p)
		if n > 0 {
			w.begun = true
			return n, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		if w.waker.woken() {
			continue
		}
		if err := w.waker.expired(); err != nil {
			return 0, err
		}
	}
}

// arm moves the read deadline when a frame begins, and only if an eighth of the timeout has passed.
func (w *wire) arm() {
	if !w.fresh || w.fixed {
		return
	}
	w.fresh = false
	if now := time.Now(); now.Sub(w.readArmed) > w.idle/8 {
		w.readArmed = now
		_ = w.nc.SetReadDeadline(now.Add(w.idle))
		w.waker.armed()
	}
}

// fix sets the read deadline for good.
func (w *wire) fix(at time.Time) {
	w.fixed = true
	_ = w.nc.SetReadDeadline(at)
}

// Write implements io.Writer for the Framer. It keeps what it is given, up to a bound.
func (w *wire) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.out = append(w.out, p...)
	if len(w.out) >= writeBuffer {
		return len(p), w.flush()
	}
	return len(p), nil
}

// flush writes what was gathered. A peer that does not take it in time is given up.
func (w *wire) flush() error {
	if w.err != nil || len(w.out) == 0 {
		return w.err
	}
	if now := time.Now(); now.Sub(w.sendArmed) > w.slow/2 {
		w.sendArmed = now
		_ = w.nc.SetWriteDeadline(now.Add(w.slow + w.slow/2))
	}
	_, w.err = w.nc.Write(w.out)
	w.out = w.out[:0]
	return w.err
}
