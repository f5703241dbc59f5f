package wirev1

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/dchest/siphash"
)

// KeySize is the length of an installation's identity key, bytes.
const KeySize = 32

// ID is the 128-bit keyed hash of a counter's canonical identity. The zero value names no counter.
type ID struct{ Hi, Lo uint64 }

// String returns the id as 32 hexadecimal digits.
func (id ID) String() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], id.Hi)
	binary.BigEndian.PutUint64(b[8:], id.Lo)
	return hex.EncodeToString(b[:])
}

// IsZero reports whether id is the zero value.
func (id ID) IsZero() bool { return id == ID{} }

// ParseID reads what String printed.
func ParseID(s string) (ID, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 {
		return ID{}, fmt.Errorf("counter id %q: want 32 hexadecimal digits", s)
	}
	return ID{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}, nil
}

// Keys are what an installation's identity key is expanded to (HKDF-SHA256, RFC 5869): one
// SipHash-2-4-128 key for counter ids, one for secrets, and a fingerprint that may be shown.
// A Keys is immutable and safe for concurrent use; the zero value is not usable.
type Keys struct {
	id          [2]uint64
	secret      [2]uint64
	fingerprint uint32
}

// NewKeys expands the 32 bytes of an identity key file.
func NewKeys(key []byte) (Keys, error) {
	if len(key) != KeySize {
		return Keys{}, fmt.Errorf("identity key has %d bytes: want %d", len(key), KeySize)
	}
	out, err := hkdf.Key(sha256.New, key, nil, "weir wire v1 identity", 36)
	if err != nil {
		return Keys{}, fmt.Errorf("expand the identity key: %w", err)
	}
	u := binary.LittleEndian
	k := Keys{
		id:          [2]uint64{u.Uint64(out[0:]), u.Uint64(out[8:])},
		secret:      [2]uint64{u.Uint64(out[16:]), u.Uint64(out[24:])},
		fingerprint: binary.BigEndian.Uint32(out[32:]),
	}
	if k.fingerprint == 0 {
		k.fingerprint = 1 // 0 on the wire means "absent"
	}
	return k, nil
}

// ErrFingerprint is returned where a message was made with another identity key.
var ErrFingerprint = errors.New("another identity key")

// Fingerprint is shown in every report and header; it is never 0 and tells nothing of the key.
func (k Keys) Fingerprint() uint32 { return k.fingerprint }

// Check returns an error that wraps ErrFingerprint where got is not this key's fingerprint.
func (k Keys) Check(got uint32) error {
	if got == k.fingerprint {
		return nil
	}
	return fmt.Errorf("%w: fingerprint %08x, this program has %08x; give every program the same identityKeyFile",
		ErrFingerprint, got, k.fingerprint)
}

// ID returns the id of a canonical identity (Identity.Append). It does not allocate.
func (k Keys) ID(canonical []byte) ID {
	lo, hi := siphash.Hash128(k.id[0], k.id[1], canonical)
	return ID{Hi: hi, Lo: lo}
}

// SecretSize is the length of a hashed secret in text, bytes.
const SecretSize = 32

// AppendSecret appends the keyed hash of a secret value, 32 lower-case hexadecimal digits. The
// dimension's kind and lower-case name are part of what is hashed, so that equal values of two
// headers do not look equal. It does not allocate where dst has room and scratch suffices.
func (k Keys) AppendSecret(dst []byte, kind DimensionKind, name string, value []byte) []byte {
	var stack [512]byte
	b := append(stack[:0], byte(kind))
	b = appendText(b, name)
	b = append(b, value...)
	lo, hi := siphash.Hash128(k.secret[0], k.secret[1], b)
	return appendHash(dst, hi, lo)
}
