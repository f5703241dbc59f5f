package store

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// Names of a counter hash's fields beside the state's, which are decimal indexes.
const (
	fieldIdentity = "identity"
	fieldThrough  = "through"
)

const logIDText = 22 // of base64url without padding

func (l LogID) text() string { return base64.RawURLEncoding.EncodeToString(l[:]) }

func parseLogID(s string) (l LogID, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(l) {
		return l, fmt.Errorf("log id %q", s)
	}
	return LogID(b), nil
}

// RecordKey is the key of a partition's record, for people.
func RecordKey(partition int32) string { return recordKey(partition) }

func recordKey(partition int32) string {
	return "{weir:" + strconv.Itoa(int(partition)) + "}:partition"
}

func counterKey(partition int32, id wirev1.ID) string {
	return "{weir:" + strconv.Itoa(int(partition)) + "}:c:" + id.String()
}

// arena gathers many short strings in one allocation.
type arena struct {
	buf  []byte
	ends []int
}

func (a *arena) reset() { a.buf, a.ends = a.buf[:0], a.ends[:0] }

func (a *arena) end()           { a.ends = append(a.ends, len(a.buf)) }
func (a *arena) text(s string)  { a.buf = append(a.buf, s...); a.end() }
func (a *arena) bytes(b []byte) { a.buf = append(a.buf, b...); a.end() }
func (a *arena) int(v int64)    { a.buf = strconv.AppendInt(a.buf, v, 10); a.end() }
func (a *arena) uint(v uint64)  { a.buf = strconv.AppendUint(a.buf, v, 10); a.end() }
func (a *arena) bool(v bool)    { a.buf = append(a.buf, "01"[b2i(v)]); a.end() }

func b2i(v bool) int {
	if v {
		return 1
	}
	return 0
}

// strings returns what was gathered since the last reset. It stays valid afterwards.
func (a *arena) strings() []string {
	all, out, from := string(a.buf), make([]string, len(a.ends)), 0
	for i, end := range a.ends {
		out[i], from = all[from:end], end
	}
	return out
}

// chunk gathers the keys and arguments of one script call.
type chunk struct{ keys, args arena }

func (c *chunk) begin(f *Flush, first, finish bool) {
	c.keys.reset()
	c.args.reset()
	c.keys.text(recordKey(f.Partition))
	a := &c.args
	a.text(f.LogID.text())
	a.int(f.Epoch)
	a.uint(f.Sequence)
	a.uint(f.Known)
	a.int(rewriteArg(f.Rewrite, first))
	a.bool(finish)
	a.int(f.Offset)
	a.int(f.Appended)
	a.int(f.OwnerTime)
	a.bool(f.Clean)
}

func rewriteArg(rewrite, first bool) int64 {
	switch {
	case !rewrite:
		return 0
	case first:
		return 1
	default:
		return 2
	}
}

func (c *chunk) counter(f *Flush, n *Counter) {
	k := &c.keys
	k.buf = append(k.buf, "{weir:"...)
	k.buf = strconv.AppendInt(k.buf, int64(f.Partition), 10)
	k.buf = append(k.buf, "}:c:"...)
	k.buf = appendID(k.buf, n.ID)
	k.end()
	a := &c.args
	a.buf = base64.RawURLEncoding.AppendEncode(a.buf, f.LogID[:])
	a.buf = append(a.buf, ':')
	a.int(n.Through)
	a.int(jitter(n.TTL).Milliseconds())
	a.bool(n.Whole)
	fields := 2 * len(n.Fields)
	if n.Whole {
		fields += 2
	}
	a.int(int64(fields))
	if n.Whole {
		a.text(fieldIdentity)
		a.bytes(n.Identity)
	}
	for _, v := range n.Fields {
		a.int(int64(v.Index))
		a.uint(v.Value)
	}
}

func appendID(dst []byte, id wirev1.ID) []byte {
	var raw [16]byte
	for i := range 8 {
		raw[7-i] = byte(id.Hi >> (8 * i))
		raw[15-i] = byte(id.Lo >> (8 * i))
	}
	return hex.AppendEncode(dst, raw[:])
}

// jitter adds up to a tenth, at most a minute, so that keys written together do not expire together.
func jitter(ttl time.Duration) time.Duration {
	return ttl + rand.N(min(ttl/10, time.Minute)+1) //nolint:gosec // no secret
}

// parseCounter reads a counter's hash, given as field, value, field, value …
func parseCounter(id wirev1.ID, hash []string) (Saved, error) {
	s := Saved{ID: id, Through: -1, Found: len(hash) > 0}
	for i := 0; i+1 < len(hash); i += 2 {
		if err := s.set(hash[i], hash[i+1]); err != nil {
			return Saved{}, fmt.Errorf("counter %s: %w", id, err)
		}
	}
	return s, nil
}

func (s *Saved) set(name, value string) (err error) {
	switch name {
	case fieldIdentity:
		s.Identity = []byte(value)
		return nil
	case fieldThrough:
		log, offset, ok := strings.Cut(value, ":")
		if !ok || len(log) != logIDText {
			return fmt.Errorf("through %q", value)
		}
		if s.LogID, err = parseLogID(log); err != nil {
			return err
		}
		s.Through, err = strconv.ParseInt(offset, 10, 64)
		return err
	}
	index, unknown := strconv.ParseUint(name, 10, 16)
	if unknown != nil { // of a newer version: not ours to read, kept where it is
		return nil //nolint:nilerr // skipped on purpose
	}
	v, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return fmt.Errorf("field %s: %w", name, err)
	}
	s.Fields = append(s.Fields, Field{Index: uint16(index), Value: v})
	return nil
}

// parseRecord reads a partition's record, given as field, value …
func parseRecord(hash []string) (Record, error) {
	r := Record{Offset: -1}
	for i := 0; i+1 < len(hash); i += 2 {
		if err := r.set(hash[i], hash[i+1]); err != nil {
			return Record{}, fmt.Errorf("partition record, field %s: %w", hash[i], err)
		}
	}
	return r, nil
}

func (r *Record) set(name, value string) (err error) {
	switch name {
	case "log":
		r.LogID, err = parseLogID(value)
	case "epoch":
		r.Epoch, err = strconv.ParseInt(value, 10, 64)
	case "offset":
		r.Offset, err = strconv.ParseInt(value, 10, 64)
	case "appended":
		r.Appended, err = strconv.ParseInt(value, 10, 64)
	case "time":
		r.OwnerTime, err = strconv.ParseInt(value, 10, 64)
	case "flush":
		r.Flush, err = strconv.ParseUint(value, 10, 64)
	case "clean":
		r.Clean = value == "1"
	}
	return err
}
