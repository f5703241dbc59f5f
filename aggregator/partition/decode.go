package partition

import (
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

// The most that one report may hold. A report is at most one Kafka message, about 1 MB.
const (
	maxTargets = 1024
	maxEntries = 65536
)

var errMalformed = errors.New("malformed report")

// report is a decoded UsageReport. Its byte slices point into the message.
type report struct {
	fingerprint uint32
	pod         []byte
	epoch       uint64
	logID       []byte
	targets     []targetUsage
	entries     []entry
}

// targetUsage holds a target's entries, report.entries[from:to].
type targetUsage struct {
	name     []byte
	from, to int
}

type entry struct {
	id                              wirev1.ID
	made, cumulative, base, offered uint64
	demand, meanCost, burst         float32
	spanMillis, ageMillis           uint32
	identity                        []byte
}

// message is a decoded UsageMessage: a claim, or the report that it was decoded into.
type message struct {
	isReport bool
	claim    *wirev1.Claim
}

// decode reads a UsageMessage, a report into r, whose slices it uses again. Written by hand since
// this is most of what an aggregator does; a fuzz test holds it to the generated code.
func (r *report) decode(b []byte) (m message, err error) {
	err = fields(b, func(num protowire.Number, typ protowire.Type, v value) error {
		switch {
		case num == 1 && typ == protowire.BytesType:
			m = message{isReport: true}
			return r.decodeReport(v.bytes)
		case num == 2 && typ == protowire.BytesType:
			m = message{claim: new(wirev1.Claim)}
			return unmarshalClaim(v.bytes, m.claim)
		}
		return nil
	})
	return m, err
}

func (r *report) decodeReport(b []byte) error {
	*r = report{targets: r.targets[:0], entries: r.entries[:0]}
	return fields(b, func(num protowire.Number, typ protowire.Type, v value) error {
		switch {
		case num == 1 && typ == protowire.Fixed32Type:
			r.fingerprint = uint32(v.number) //nolint:gosec // a fixed32
		case num == 2 && typ == protowire.BytesType:
			r.pod = v.bytes
		case num == 3 && typ == protowire.Fixed64Type:
			r.epoch = v.number
		case num == 5 && typ == protowire.BytesType:
			return r.decodeTarget(v.bytes)
		case num == 6 && typ == protowire.BytesType:
			r.logID = v.bytes
		}
		return nil
	})
}

func (r *report) decodeTarget(b []byte) error {
	if len(r.targets) == maxTargets {
		return errMalformed
	}
	t := targetUsage{from: len(r.entries)}
	err := fields(b, func(num protowire.Number, typ protowire.Type, v value) error {
		switch {
		case num == 1 && typ == protowire.BytesType:
			t.name = v.bytes
		case num == 2 && typ == protowire.BytesType:
			if len(r.entries) == maxEntries {
				return errMalformed
			}
			r.entries = append(r.entries, entry{})
			return r.entries[len(r.entries)-1].decode(v.bytes)
		}
		return nil
	})
	t.to = len(r.entries)
	r.targets = append(r.targets, t)
	return err
}

func (e *entry) decode(b []byte) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errMalformed
		}
		v, m := consume(num, typ, b[n:])
		if m < 0 {
			return errMalformed
		}
		b = b[n+m:]
		e.set(num, typ, v)
	}
	return nil
}

func (e *entry) set(num protowire.Number, typ protowire.Type, v value) {
	switch typ {
	case protowire.Fixed64Type:
		switch num {
		case 1:
			e.id.Hi = v.number
		case 2:
			e.id.Lo = v.number
		}
	case protowire.VarintType:
		e.setVarint(num, v.number)
	case protowire.Fixed32Type:
		f := math.Float32frombits(uint32(v.number)) //nolint:gosec // a fixed32
		switch num {
		case 7:
			e.demand = f
		case 8:
			e.meanCost = f
		case 9:
			e.burst = f
		}
	case protowire.BytesType:
		if num == 12 {
			e.identity = v.bytes
		}
	}
}

func (e *entry) setVarint(num protowire.Number, v uint64) {
	switch num {
	case 3:
		e.made = v
	case 4:
		e.cumulative = v
	case 5:
		e.base = v
	case 6:
		e.offered = v
	case 10:
		e.spanMillis = uint32(v) //nolint:gosec // as protobuf truncates
	case 11:
		e.ageMillis = uint32(v) //nolint:gosec // as protobuf truncates
	}
}

type value struct {
	number uint64
	bytes  []byte
}

// fields calls f for each field of a message.
func fields(b []byte, f func(protowire.Number, protowire.Type, value) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errMalformed
		}
		v, m := consume(num, typ, b[n:])
		if m < 0 {
			return errMalformed
		}
		b = b[n+m:]
		if err := f(num, typ, v); err != nil {
			return err
		}
	}
	return nil
}

// consume reads one field's value; a negative length is malformed.
func consume(num protowire.Number, typ protowire.Type, b []byte) (v value, n int) {
	switch typ {
	case protowire.VarintType:
		v.number, n = protowire.ConsumeVarint(b)
	case protowire.Fixed64Type:
		v.number, n = protowire.ConsumeFixed64(b)
	case protowire.Fixed32Type:
		var x uint32
		x, n = protowire.ConsumeFixed32(b)
		v.number = uint64(x)
	case protowire.BytesType:
		v.bytes, n = protowire.ConsumeBytes(b)
	default:
		n = protowire.ConsumeFieldValue(num, typ, b)
	}
	return v, n
}
