package wire

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// claims are those of a verified token, as the jwt_authn filter leaves them: a struct of payloads, by the
// name that its configuration chose. Nothing is read before a claim is asked for. The bytes have been
// checked.
type claims struct {
	entry    []byte // of filter_metadata; its value is the struct
	known    bool
	payloads []payload // once known: by name, each once
	texts    []byte    // of numbers
}

// payload is an entry of the struct of payloads.
type payload struct {
	name  string
	entry []byte
}

func (c *claims) of(entry []byte) { c.entry = entry }

func (c *claims) reset() {
	if cap(c.texts) > maxKeptBytes {
		c.texts = nil
	}
	*c = claims{payloads: emptied(c.payloads), texts: c.texts[:0]}
}

// Claim implements match.Claims. Where several payloads have a claim, the one of the name that sorts first
// counts.
func (c *claims) Claim(name string) (string, bool) {
	if !c.known {
		c.read()
	}
	for i := range c.payloads {
		if v, ok := c.text(claimOf(c.payloads[i].entry, name)); ok {
			return v, true
		}
	}
	return "", false
}

// read finds the payloads. Of a name given twice the last counts.
func (c *claims) read() {
	c.known = true
	for b := c.entry; len(b) > 0; {
		var f part
		if f, b = next(b); f.num == 2 && f.typ == protowire.BytesType {
			c.readStruct(f.bytes)
		}
	}
	slices.SortStableFunc(c.payloads, func(a, b payload) int { return cmp.Compare(a.name, b.name) })
	kept := c.payloads[:0]
	for i, p := range c.payloads {
		if i+1 == len(c.payloads) || c.payloads[i+1].name != p.name {
			kept = append(kept, p)
		}
	}
	clear(c.payloads[len(kept):])
	c.payloads = kept
}

func (c *claims) readStruct(b []byte) {
	for len(b) > 0 {
		var f part
		if f, b = next(b); f.num == 1 && f.typ == protowire.BytesType {
			c.payloads = append(c.payloads, payload{keyOf(f.bytes), f.bytes})
		}
	}
}

// keyOf is the key of a map's entry.
func keyOf(entry []byte) (key string) {
	for len(entry) > 0 {
		var f part
		if f, entry = next(entry); f.num == 1 && f.typ == protowire.BytesType {
			key = view(f.bytes)
		}
	}
	return key
}

// claimOf finds a claim's entry in a payload; nil: it has none, or is no struct. A value given in pieces is
// one: another kind drops what was there, a struct adds to a struct.
func claimOf(entry []byte, name string) (claim []byte) {
	for len(entry) > 0 {
		var f part
		if f, entry = next(entry); f.num != 2 || f.typ != protowire.BytesType {
			continue
		}
		for v := f.bytes; len(v) > 0; {
			var k part
			k, v = next(v)
			switch {
			case !k.isKind():
			case k.num == structKind:
				claim = claimIn(k.bytes, name, claim)
			default:
				claim = nil
			}
		}
	}
	return claim
}

// claimIn finds the last entry of a name in a struct; otherwise what was found earlier.
func claimIn(b []byte, name string, earlier []byte) []byte {
	for len(b) > 0 {
		var f part
		if f, b = next(b); f.num == 1 && f.typ == protowire.BytesType && keyOf(f.bytes) == name {
			earlier = f.bytes
		}
	}
	return earlier
}

// text is a scalar claim as text, by its entry; lists and objects have none.
func (c *claims) text(entry []byte) (string, bool) {
	var last part
	for len(entry) > 0 {
		var f part
		if f, entry = next(entry); f.num != 2 || f.typ != protowire.BytesType {
			continue
		}
		for v := f.bytes; len(v) > 0; {
			var k part
			if k, v = next(v); k.isKind() {
				last = k
			}
		}
	}
	switch last.num {
	case textKind:
		return view(last.bytes), true
	case numberKind:
		from := len(c.texts)
		c.texts = strconv.AppendFloat(c.texts, math.Float64frombits(last.number), 'f', -1, 64)
		return view(c.texts[from:]), true
	case boolKind:
		return strconv.FormatBool(protowire.DecodeBool(last.number)), true
	default:
		return "", false
	}
}

// The kinds of a google.protobuf.Value.
const (
	nullKind   protowire.Number = 1
	numberKind protowire.Number = 2
	textKind   protowire.Number = 3
	boolKind   protowire.Number = 4
	structKind protowire.Number = 5
	listKind   protowire.Number = 6
)

// part is a field of checked bytes. Number is of a varint or a fixed64.
type part struct {
	num    protowire.Number
	typ    protowire.Type
	bytes  []byte
	number uint64
}

// isKind reports whether a field of a Value is its kind, rather than unknown.
func (p *part) isKind() bool {
	switch p.num {
	case nullKind, boolKind:
		return p.typ == protowire.VarintType
	case numberKind:
		return p.typ == protowire.Fixed64Type
	case textKind, structKind, listKind:
		return p.typ == protowire.BytesType
	default:
		return false
	}
}

// next takes a field off checked bytes; bytes that are not end them.
func next(b []byte) (part, []byte) {
	num, typ, n := protowire.ConsumeTag(b)
	if n < 0 {
		return part{}, nil
	}
	b = b[n:]
	p := part{num: num, typ: typ}
	switch typ {
	case protowire.BytesType:
		p.bytes, n = protowire.ConsumeBytes(b)
	case protowire.VarintType:
		p.number, n = protowire.ConsumeVarint(b)
	case protowire.Fixed64Type:
		p.number, n = protowire.ConsumeFixed64(b)
	default:
		n = protowire.ConsumeFieldValue(num, typ, b)
	}
	if n < 0 {
		return part{}, nil
	}
	return p, b[n:]
}
