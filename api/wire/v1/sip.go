package wirev1

import (
	"encoding/binary"
	"math/bits"
)

// sip is SipHash-2-4-128 under way: what a fixed beginning has done to its state, so that many texts with that beginning
// cost what follows it. It is immutable once begun.
type sip struct {
	v    [4]uint64
	part uint64 // of the word under way, from the lowest byte
	n    int    // bytes so far
}

// begin returns the hash of key k so far as text goes.
func begin(k [2]uint64, text []byte) sip {
	s := sip{n: len(text), v: [4]uint64{
		k[0] ^ 0x736f6d6570736575, k[1] ^ 0x646f72616e646f6d ^ 0xee, k[0] ^ 0x6c7967656e657261, k[1] ^ 0x7465646279746573,
	}}
	v0, v1, v2, v3 := s.v[0], s.v[1], s.v[2], s.v[3]
	for ; len(text) >= 8; text = text[8:] {
		m := binary.LittleEndian.Uint64(text)
		v3 ^= m
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
		v0 ^= m
	}
	s.v = [4]uint64{v0, v1, v2, v3}
	for i, c := range text {
		s.part |= uint64(c) << (8 * i)
	}
	return s
}

// sum returns the hash of the beginning with rest after it.
func (s *sip) sum(rest []byte) (lo, hi uint64) {
	v0, v1, v2, v3 := s.v[0], s.v[1], s.v[2], s.v[3]
	m, held := s.part, s.n%8
	last := uint64(s.n+len(rest)) << 56
	if held+len(rest) >= 8 {
		if held > 0 {
			m |= low(rest) << (8 * held)
			rest = rest[8-held:]
			v3 ^= m
			v0, v1, v2, v3 = round(v0, v1, v2, v3)
			v0, v1, v2, v3 = round(v0, v1, v2, v3)
			v0 ^= m
		}
		for ; len(rest) >= 8; rest = rest[8:] {
			m = binary.LittleEndian.Uint64(rest)
			v3 ^= m
			v0, v1, v2, v3 = round(v0, v1, v2, v3)
			v0, v1, v2, v3 = round(v0, v1, v2, v3)
			v0 ^= m
		}
		m, held = 0, 0
	}
	m |= low(rest)<<(8*held) | last
	v3 ^= m
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0 ^= m
	v0, v1, v2, v3 = rounds(v0, v1, v2^0xee, v3)
	lo = v0 ^ v1 ^ v2 ^ v3
	v0, v1, v2, v3 = rounds(v0, v1^0xdd, v2, v3)
	return lo, v0 ^ v1 ^ v2 ^ v3
}

// low is a text's first bytes, up to eight.
func low(b []byte) (m uint64) {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b)
	}
	if len(b) >= 4 { // the two halves may overlap, in equal bits
		m = uint64(binary.LittleEndian.Uint32(b[len(b)-4:])) << (8 * (len(b) - 4))
		return m | uint64(binary.LittleEndian.Uint32(b))
	}
	for i, c := range b {
		m |= uint64(c) << (8 * i)
	}
	return m
}

func rounds(v0, v1, v2, v3 uint64) (a, b, c, d uint64) {
	for range 4 {
		v0, v1, v2, v3 = round(v0, v1, v2, v3)
	}
	return v0, v1, v2, v3
}

func round(v0, v1, v2, v3 uint64) (a, b, c, d uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}
