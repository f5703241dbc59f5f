package unary

import (
	"cmp"
	"slices"
)

// stream is a call begun and not yet answered. It is used again for others of its connection.
type stream struct {
	id      uint32
	call    request
	body    []byte // of the request, with its prefix, where it came in more than one frame
	got     int64  // bytes of the body, of any kind
	ended   bool   // the peer has sent all
	receive int64  // what the peer may still send
	send    int64  // what may still be sent to the peer; below zero after a change of settings
	held    []byte // of the reply, for want of a window
	grpc    bool   // the reply ends with trailers
}

// streams is the table of a connection's streams, ordered by id: ids only rise, so a new one is the last.
type streams struct {
	open []*stream
	free []*stream
}

func (t *streams) find(id uint32) *stream {
	if n := len(t.open); n > 0 && t.open[n-1].id == id { // the newest, nearly always
		return t.open[n-1]
	}
	if i, ok := t.index(id); ok {
		return t.open[i]
	}
	return nil
}

func (t *streams) index(id uint32) (int, bool) {
	return slices.BinarySearchFunc(t.open, id, func(s *stream, id uint32) int { return cmp.Compare(s.id, id) })
}

func (t *streams) add(id uint32) *stream {
	var s *stream
	if n := len(t.free); n > 0 {
		s, t.free = t.free[n-1], t.free[:n-1]
	} else {
		s = new(stream)
	}
	s.id = id
	t.open = append(t.open, s)
	return s
}

// remove forgets s, which is not to be used afterwards.
func (t *streams) remove(s *stream) {
	if i, ok := t.index(s.id); ok {
		t.open = slices.Delete(t.open, i, i+1)
	}
	if len(t.free) >= keptStreams || cap(s.body)+cap(s.held) > keptBuffer {
		return
	}
	*s = stream{body: s.body[:0], held: s.held[:0]}
	t.free = append(t.free, s)
}

// end is how a stream came to be closed.
type end uint8

const (
	endNever end = iota // not known: skipped by the peer, or long ago
	endDone             // both sides have sent all
	endReset            // by this server: the peer may not have known when it sent
	endPeer             // by the peer's reset
)

// closed remembers the streams closed last, for frames that come too late.
type closed struct {
	ids  [128]uint32
	ends [128]end
	next int
}

func (c *closed) add(id uint32, e end) {
	c.ids[c.next], c.ends[c.next] = id, e
	c.next = (c.next + 1) % len(c.ids)
}

func (c *closed) find(id uint32) end {
	if i := slices.Index(c.ids[:], id); i >= 0 {
		return c.ends[i]
	}
	return endNever
}
