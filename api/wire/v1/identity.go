package wirev1

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Algorithm of a rate, as the identity encodes it.
type Algorithm uint8

// The algorithms. The zero value is none of them.
const (
	SlidingWindow Algorithm = 1
	TokenBucket   Algorithm = 2
	Calendar      Algorithm = 3
)

// Period of a Calendar rate.
type Period uint8

// The civil periods. The zero value stands where there is none. A week begins on Monday.
const (
	NoPeriod Period = 0
	Hour     Period = 1
	Day      Period = 2
	Week     Period = 3
	Month    Period = 4
	Year     Period = 5
)

// DimensionKind says what a counter's dimension was taken from. A missing value is a kind of its
// own, never a string that a request could send.
type DimensionKind uint8

// The kinds. Client kinds come from the policy's client sources; a value that is secret, or longer
// than MaxPlainValue, is carried as its keyed hash (AppendSecret) under a Hashed kind.
const (
	DimClientPrincipal       DimensionKind = 1
	DimClientPrincipalHashed DimensionKind = 2
	DimClientJWTClaim        DimensionKind = 3 // Name: the claim
	DimClientJWTClaimHashed  DimensionKind = 4
	DimClientHeader          DimensionKind = 5 // Name: the header, lower case; reveal: true
	DimClientHeaderHashed    DimensionKind = 6
	DimClientRemoteAddress   DimensionKind = 7 // Value: the prefix, as netip.Prefix prints it
	DimClientMissing         DimensionKind = 8
	DimEndpoint              DimensionKind = 9 // Value: "METHOD pattern", or "*"
	DimMethod                DimensionKind = 10
	DimHost                  DimensionKind = 11
	DimHostHashed            DimensionKind = 12
	DimHeader                DimensionKind = 13 // Name: the header, lower case
	DimHeaderHashed          DimensionKind = 14
	DimHeaderMissing         DimensionKind = 15
	DimOverflow              DimensionKind = 16 // the limit's overflow counter; it has no other dimension
	DimMethodHashed          DimensionKind = 17
)

const lastKind = DimMethodHashed

// MaxPlainValue is the longest value, in bytes, that an identity carries in plain text.
const MaxPlainValue = 256

// MaxIdentity bounds a canonical encoding, bytes; a longer one is refused by DecodeIdentity.
const MaxIdentity = 4096

// MaxDimensions bounds the dimensions of a counter.
const MaxDimensions = 8

// Dimension is one counter dimension: a kind, the name of what it was taken from where the kind
// has one, and any bytes as its value.
type Dimension struct {
	Kind  DimensionKind
	Name  string
	Value string
}

// Identity is what makes a counter that counter and no other (DESIGN 2). The amount, the override
// and the policy's origin and version are not part of it.
type Identity struct {
	Target       string // canonical name, namespace/kind/name
	Policy       string // namespace/name
	Limit        string
	Algorithm    Algorithm
	WindowMillis uint64 // SlidingWindow, TokenBucket; 0 for Calendar
	Period       Period // Calendar
	TimeZone     string // Calendar: IANA name
	Dimensions   []Dimension
}

const identityVersion = 1

// AppendPrefix appends the part of the canonical encoding that a policy fixes, up to and with the
// number of dimensions. AppendDimension completes it, called that many times.
func (i *Identity) AppendPrefix(dst []byte, dimensions int) []byte {
	dst = append(dst, identityVersion)
	dst = appendText(dst, i.Target)
	dst = appendText(dst, i.Policy)
	dst = appendText(dst, i.Limit)
	dst = append(dst, byte(i.Algorithm))
	dst = binary.AppendUvarint(dst, i.WindowMillis)
	dst = append(dst, byte(i.Period))
	dst = appendText(dst, i.TimeZone)
	return append(dst, byte(dimensions))
}

// AppendDimension appends one dimension of the canonical encoding.
func AppendDimension(dst []byte, kind DimensionKind, name, value string) []byte {
	dst = append(dst, byte(kind))
	return appendText(appendText(dst, name), value)
}

// AppendEndpoint appends the dimension of a method and the text of a pattern.
func AppendEndpoint(dst []byte, method, pattern string) []byte {
	dst = append(dst, byte(DimEndpoint), 0) // it has no name
	dst = append(appendLength(dst, len(method)+1+len(pattern)), method...)
	return append(append(dst, ' '), pattern...)
}

// Append appends the canonical encoding, version 1: a version byte, then texts as a length
// (unsigned varint) and bytes, numbers as unsigned varints, kinds as one byte, in the order of the
// struct's fields.
func (i *Identity) Append(dst []byte) []byte {
	dst = i.AppendPrefix(dst, len(i.Dimensions))
	for _, d := range i.Dimensions {
		dst = AppendDimension(dst, d.Kind, d.Name, d.Value)
	}
	return dst
}

func appendText(dst []byte, s string) []byte { return append(appendLength(dst, len(s)), s...) }

func appendLength(dst []byte, n int) []byte {
	if n < 0x80 {
		return append(dst, byte(n))
	}
	return binary.AppendUvarint(dst, uint64(n)) //nolint:gosec // a length
}

// ErrIdentity is wrapped by every error of DecodeIdentity.
var ErrIdentity = errors.New("malformed counter identity")

// DecodeIdentity reads a canonical encoding. It accepts exactly what Append writes: for every b
// without an error, Append of the result is b. The result shares no memory with b.
func DecodeIdentity(b []byte) (Identity, error) {
	if len(b) > MaxIdentity {
		return Identity{}, fmt.Errorf("%w: %d bytes, at most %d", ErrIdentity, len(b), MaxIdentity)
	}
	r := reader{rest: b}
	if v := r.byte(); v != identityVersion && !r.failed {
		return Identity{}, fmt.Errorf("%w: version %d, this program knows %d", ErrIdentity, v, identityVersion)
	}
	i := Identity{
		Target: r.text(), Policy: r.text(), Limit: r.text(),
		Algorithm: Algorithm(r.byte()), WindowMillis: r.uvarint(),
		Period: Period(r.byte()), TimeZone: r.text(),
	}
	n := int(r.byte())
	if n > MaxDimensions {
		return Identity{}, fmt.Errorf("%w: %d dimensions, at most %d", ErrIdentity, n, MaxDimensions)
	}
	for range n {
		d := Dimension{Kind: DimensionKind(r.byte()), Name: r.text(), Value: r.text()}
		if d.Kind == 0 || d.Kind > lastKind {
			r.failed = true
		}
		i.Dimensions = append(i.Dimensions, d)
	}
	if r.failed || len(r.rest) > 0 || !i.consistent() {
		return Identity{}, fmt.Errorf("%w: %d bytes", ErrIdentity, len(b))
	}
	return i, nil
}

func (i *Identity) consistent() bool {
	switch i.Algorithm {
	case SlidingWindow, TokenBucket:
		return i.WindowMillis > 0 && i.Period == NoPeriod && i.TimeZone == ""
	case Calendar:
		return i.WindowMillis == 0 && i.Period >= Hour && i.Period <= Year && i.TimeZone != ""
	default:
		return false
	}
}

// reader consumes an encoding; after a failure it yields zero values.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) byte() byte {
	if r.failed || len(r.rest) == 0 {
		r.failed = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) uvarint() uint64 {
	if r.failed {
		return 0
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || n != uvarintLen(v) { // one number has one encoding
		r.failed = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) text() string {
	n := r.uvarint()
	if r.failed || n > uint64(len(r.rest)) {
		r.failed = true
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}
