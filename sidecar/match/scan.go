package match

import (
	"net/netip"

	"github.com/weirproxy/weir/internal/policy"
)

// scan is one request under way: what has been read of it, once each, and the memory for that. It
// is what conditions look at.
type scan struct {
	req     *Request
	path    policy.Path
	pathBuf []byte
	hasPath bool
	host    string
	hasHost bool
	scratch []byte // texts made for this request
	probes  answer // whether it is a health check
}

var _ policy.View = (*scan)(nil)

// keptBuffer bounds the memory kept from one request to the next, bytes: one with long headers must not stay for ever.
const keptBuffer = 16 << 10

func (s *scan) reset(req *Request) {
	if cap(s.scratch) > keptBuffer {
		s.scratch = nil
	}
	if cap(s.pathBuf) > keptBuffer {
		s.pathBuf = nil
	}
	*s = scan{req: req, pathBuf: s.pathBuf, scratch: s.scratch[:0]}
}

// Method implements policy.View.
func (s *scan) Method() string { return s.req.Method }

// Path implements policy.View.
func (s *scan) Path() *policy.Path {
	if !s.hasPath {
		s.path, s.pathBuf = policy.NormalizePath(s.req.Path, s.pathBuf)
		s.hasPath = true
	}
	return &s.path
}

// Host implements policy.View.
func (s *scan) Host() string {
	if !s.hasHost {
		s.host, s.hasHost = policy.NormalHost(s.req.Host), true
	}
	return s.host
}

// Header implements policy.View.
func (s *scan) Header(name string) (string, bool) { return s.req.Headers.get(name, &s.scratch) }

// Source implements policy.View.
func (s *scan) Source(hops int) netip.Addr {
	if hops == 0 {
		return plainAddr(s.req.Peer)
	}
	forwarded, _ := s.Header("x-forwarded-for")
	return sourceAddress(s.req.Peer, forwarded, hops)
}

// picked returns a header's value as the pick says; "" where it has none.
func (s *scan) picked(name string, pick policy.Pick) string {
	joined, _ := s.Header(name)
	switch pick {
	case policy.PickFirst:
		return firstValue(joined)
	case policy.PickLast:
		return lastValue(joined)
	default:
		return joined
	}
}
