package wire

import (
	"errors"
	"fmt"
	"net/netip"

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
	s.used, s.want = true, want
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
		num, v, n := shortField(b)
		bytes := true
		if n == 0 {
			if num, v, n, bytes = longField(b); n < 0 {
				return ErrInvalid
			}
		}
		b = b[n:]
		if num > maxField {
			continue
		}
		f := fields[num]
		if f.kind == mapped && depth == 0 {
			return errNested // whatever its wire type, as the generated decoder does
		}
		if !bytes || f.take == endHeader && s.plainHeader(v) {
			continue
		}
		if err := s.check(f, v, depth); err != nil {
			return err
		}
		if f.take != ignore {
			s.take(f.take, v)
		}
	}
	return nil
}

// shortField reads a field of bytes whose number and length take a byte each, as nearly all do; n is 0 where it is none.
func shortField(b []byte) (num protowire.Number, v []byte, n int) {
	if len(b) < 2 || b[0]&0x87 != byte(protowire.BytesType) || b[0] < 1<<3 {
		return 0, nil, 0
	}
	if n = 2 + int(b[1]); n >= 2+0x80 || n > len(b) {
		return 0, nil, 0
	}
	return protowire.Number(b[0] >> 3), b[2:n], n
}

// longField reads any field; n is negative where there is none. The common ones, of a number's single byte, go first: numbers,
// and messages of 128 bytes to 16 KiB.
func longField(b []byte) (num protowire.Number, v []byte, n int, bytes bool) {
	if len(b) >= 3 && b[0] >= 1<<3 {
		switch b[0] & 0x87 {
		case byte(protowire.VarintType):
			if _, n = protowire.ConsumeVarint(b[1:]); n > 0 {
				return protowire.Number(b[0] >> 3), nil, 1 + n, false
			}
		case byte(protowire.BytesType):
			if n = 3 + int(b[1]&0x7f) + int(b[2])<<7; b[1] >= 0x80 && b[2] < 0x80 && n <= len(b) {
				return protowire.Number(b[0] >> 3), b[3:n], n, true
			}
		}
	}
	return anyField(b)
}

// anyField is longField by the rules alone.
func anyField(b []byte) (num protowire.Number, v []byte, n int, bytes bool) {
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 || num > protowire.MaxValidNumber {
		return 0, nil, -1, false
	}
	var length int
	if typ == protowire.BytesType {
		v, length = protowire.ConsumeBytes(b[n:])
	} else {
		length = protowire.ConsumeFieldValue(num, typ, b[n:])
	}
	if length < 0 {
		return 0, nil, -1, false
	}
	return num, v, n + length, typ == protowire.BytesType
}

// check says what is wrong with the bytes of a field, and takes what is in it.
func (s *Scratch) check(f field, v []byte, depth int) error {
	switch f.kind {
	case plain:
		return nil
	case text:
		if !validText(v) {
			return errUTF8
		}
		return nil
	default:
		return s.walk(f.into, v, depth)
	}
}

// plainHeader takes an entry of headers that is a name and a value, in this order, in ASCII. It reports false, and has done
// nothing, where the entry is anything else.
func (s *Scratch) plainHeader(entry []byte) bool {
	key, name, n := shortField(entry)
	if key != 1 || n == len(entry) {
		return false
	}
	second, value, more := shortField(entry[n:])
	if second != 2 || n+more != len(entry) || !isASCII(entry) { // tags and lengths are ASCII, too
		return false
	}
	s.join(view(name), view(value))
	return true
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
