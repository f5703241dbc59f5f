package wirev1

import "encoding/binary"

// Prefix gives the ids of identities that begin alike, as all of one rate and target do: what they share is hashed once. It is
// immutable and safe for concurrent use; the zero value is not usable.
type Prefix struct{ hash sip }

// Prefix begins with the first bytes of a canonical identity (Identity.AppendPrefix).
func (k Keys) Prefix(canonical []byte) Prefix { return Prefix{begin(k.id, canonical)} }

// ID returns what Keys.ID does of the prefix with rest after it. It does not allocate.
func (p *Prefix) ID(rest []byte) ID {
	lo, hi := p.hash.sum(rest)
	return ID{Hi: hi, Lo: lo}
}

// Secret hashes the secret values of one source. It is immutable and safe for concurrent use; the zero value is not usable.
type Secret struct{ hash sip }

// Secret is for the values of a dimension's kind and lower-case name.
func (k Keys) Secret(kind DimensionKind, name string) Secret {
	return Secret{begin(k.secret, appendText([]byte{byte(kind)}, name))}
}

// Append appends what Keys.AppendSecret does. It does not allocate where dst has room.
func (s *Secret) Append(dst, value []byte) []byte {
	lo, hi := s.hash.sum(value)
	return appendHash(dst, hi, lo)
}

// appendHash appends 32 lower-case hexadecimal digits.
func appendHash(dst []byte, hi, lo uint64) []byte {
	for _, half := range [...]uint64{hi, lo} {
		dst = binary.BigEndian.AppendUint64(dst, hexDigits(uint32(half>>32)))
		dst = binary.BigEndian.AppendUint64(dst, hexDigits(uint32(half))) //nolint:gosec // its lower half
	}
	return dst
}

// hexDigits spreads a number's nibbles to a byte each, and makes digits of all eight at once.
func hexDigits(x uint32) uint64 {
	const each = 0x0101010101010101
	y := uint64(x)
	y = (y | y<<16) & 0x0000ffff0000ffff
	y = (y | y<<8) & 0x00ff00ff00ff00ff
	y = (y | y<<4) & (0x0f * each)
	letters := (y + 6*each) >> 4 & each
	return y + '0'*each + letters*('a'-'0'-10)
}
