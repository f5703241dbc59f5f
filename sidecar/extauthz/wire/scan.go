package wire

import (
	"errors"
	"fmt"
	"net/netip"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirproxy/weir/sidecar/match"
)

// Why a check is refused.
var (
	// ErrInvalid: no CheckRequest. Every such error wraps it.
	ErrInvalid = errors.New("not the bytes of a CheckRequest")
	// ErrNotHTTP: a CheckRequest, but not about an HTTP request. Nothing can be decided on it.
	ErrNotHTTP = errors.New("the check is not about an HTTP request")

	errUTF8   = fmt.Errorf("%w: a string is not UTF-8", ErrInvalid)
	errNested = fmt.Errorf("%w: messages are nested too deeply", ErrInvalid)
)

const (
	targetExtension = "weir.target"
	jwtFilter       = "envoy.filters.http.jwt_authn"
)

// Scan fills out with what the CheckRequest in b says, Random apart. Of headers it gives those that want
// names; nil: all. Texts and claims are views of b and of s: out is valid until b changes, or s is used or
// reset. It takes memory only from s, and time in proportion to the length of b. An error leaves out
// empty.
func Scan(b []byte, want *Wanted, out *match.Request, s *Scratch) error {
	s.Reset()
	*out = match.Request{}
	s.want = want
	if want != nil {
		s.joined = grown(s.joined, len(want.names))
	}
	if err := s.walk(checkRequest, b, protowire.DefaultRecursionLimit); err != nil {
		return err
	}
	if !s.http {
		return ErrNotHTTP
	}
	s.finish(out)
	return nil
}

// walk checks a message and takes from it what its fields say. depth is how many more messages and entries
// may be nested, this one included.
func (s *Scratch) walk(m message, b []byte, depth int) error {
	if depth--; depth < 0 {
		return errNested
	}
	fields := &schema[m]
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || num > protowire.MaxValidNumber {
			return ErrInvalid
		}
		b = b[n:]
		var f field
		if num <= maxField {
			f = fields[num]
		}
		if f.kind == mapped && depth == 0 {
			return errNested // whatever its wire type, as the generated decoder does
		}
		if typ != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return ErrInvalid
			}
			b = b[n:]
			continue
		}
		v, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return ErrInvalid
		}
		b = b[n:]
		if err := s.field(f, v, depth); err != nil {
			return err
		}
	}
	return nil
}

// field checks the bytes of a field, and takes them.
func (s *Scratch) field(f field, v []byte, depth int) error {
	switch f.kind {
	case plain:
	case text:
		if !utf8.Valid(v) {
			return errUTF8
		}
	default:
		if err := s.walk(f.into, v, depth); err != nil {
			return err
		}
	}
	if f.take != ignore {
		s.take(f.take, v)
	}
	return nil
}

// take is called in the order of the bytes: the last of a scalar counts, and what is said of a message in
// several pieces adds up, as protobuf has it.
func (s *Scratch) take(t take, v []byte) {
	switch t {
	case takeMethod:
		s.req.Method = view(v)
	case takePath:
		s.req.Path = view(v)
	case takeHost:
		s.req.Host = view(v)
	case takePrincipal:
		s.req.Principal = view(v)
	case takeAddress:
		s.address = view(v)
	case dropAddress:
		s.address = ""
	case takeKey:
		s.key = view(v)
	case takeValue:
		s.value = view(v)
	case takeRawValue:
		s.rawValue = view(v)
	case endRequest:
		s.http = true
	default:
		s.end(t, v)
		s.key, s.value, s.rawValue = "", "", ""
	}
}

// end takes an entry or a header, whose parts are complete.
func (s *Scratch) end(t take, entry []byte) {
	switch t {
	case endHeader:
		s.join(s.key, s.value)
	case endRawHeader:
		if s.rawValue != "" {
			s.value = s.rawValue
		}
		if name, ok := s.want.name(s.key); ok {
			s.raw = append(s.raw, match.Header{Name: name, Value: s.value})
		}
	case endExtension:
		if s.key == targetExtension {
			s.req.Target = s.value
		}
	case endMetadata:
		if s.key == jwtFilter && s.want.wantsClaims() {
			s.claims.of(entry)
			s.req.Claims = &s.claims
		}
	}
}

// finish gives what was taken.
func (s *Scratch) finish(out *match.Request) {
	if s.address != "" {
		s.req.Peer, _ = netip.ParseAddr(s.address)
	}
	s.settle()
	s.req.Headers = match.Headers{Joined: s.all, Raw: s.raw}
	*out = s.req
}
