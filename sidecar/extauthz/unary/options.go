package unary

import (
	"time"

	"google.golang.org/grpc/codes"
)

// Handler answers one call on its connection's goroutine, so it must not wait; handlers of different
// connections run at once. It appends the reply's message to reply and returns it, and does not keep
// request or reply. With a code other than OK what it returns is dropped. Message goes to the peer with
// such a code, cut at 1 KiB.
type Handler func(request, reply []byte) (out []byte, code codes.Code, message string)

// Methods is what a server answers, by path: "/package.Service/Method". Any other gets UNIMPLEMENTED.
type Methods map[string]Handler

// Options bounds a server. The zero value of a field means its default.
type Options struct {
	MaxMessage     int           // bytes of a message, either way; 4 MiB, at most 1 GiB. Over it: RESOURCE_EXHAUSTED
	MaxStreams     int           // calls begun and not yet answered, on one connection; 4096, at most 65,536. Over it: REFUSED_STREAM
	MaxConnections int           // 256; one over it is closed as it comes
	MaxHeaders     int           // bytes of a call's header list as HTTP/2 counts them; 64 KiB, at most 1 MiB. Over it: status 431
	Idle           time.Duration // without a byte from the peer: GOAWAY, then closed; also for one frame to arrive; 10 min
	Write          time.Duration // for one write to be taken, up to half as much again; also for the preface; 10 s
	Drain          time.Duration // for calls under way when Serve is to end; 5 s

	// Panicked is told what a handler panicked with, on the connection's goroutine. The call is answered
	// with INTERNAL either way. Nil: nobody is told.
	Panicked func(method string, value any)
}

func (o Options) withDefaults() Options {
	or(&o.MaxMessage, 4<<20)
	o.MaxMessage = min(o.MaxMessage, 1<<30)
	or(&o.MaxStreams, 4096)
	o.MaxStreams = min(o.MaxStreams, 1<<16)
	or(&o.MaxConnections, 256)
	or(&o.MaxHeaders, 64<<10)
	o.MaxHeaders = min(o.MaxHeaders, 1<<20)
	or(&o.Idle, 10*time.Minute)
	or(&o.Write, 10*time.Second)
	or(&o.Drain, 5*time.Second)
	return o
}

func or[T int | time.Duration](v *T, fallback T) {
	if *v <= 0 {
		*v = fallback
	}
}

// streamWindow is what a peer may send of one body before it needs an update: the largest message, so
// that only padding ever makes one necessary.
func (o *Options) streamWindow() int64 {
	return max(int64(o.MaxMessage)+prefixSize, initialWindow)
}
