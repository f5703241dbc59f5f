package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/extauthz/content"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// maxForms bounds the rates that are encoded ahead: the limits' own first, then those of overrides. Answers
// of the rest are encoded when they are given.
const maxForms = 1024

// Messages that say the same always.
const (
	okStatus      = "\x0a\x00"            // status {code: OK}
	plainOK       = okStatus + "\x1a\x00" // and ok_response {}
	refusedStatus = "\x0a\x02\x08\x08"    // status {code: RESOURCE_EXHAUSTED}
)

// Encoder writes answers. It is immutable and safe for concurrent use. The zero value, and one of other
// policies, writes the same, only slower.
type Encoder struct {
	forms   map[formKey]*form
	shadows map[*policy.Rate][]byte // dynamic_metadata where a rate would have refused
}

// NewEncoder encodes ahead what answers under the policies say.
func NewEncoder(policies []*policy.Policy) *Encoder {
	e := &Encoder{forms: make(map[formKey]*form), shadows: make(map[*policy.Rate][]byte)}
	for _, own := range []bool{true, false} {
		for _, p := range policies {
			for _, l := range p.Limits {
				e.prepare(l, own)
			}
		}
	}
	return e
}

// prepare encodes a limit's own forms, or those of its overrides: a pass names the limit's rate with the
// override's rule, a refusal the override's rate.
func (e *Encoder) prepare(l *policy.Limit, own bool) {
	if l.Mode == policy.Off {
		return
	}
	if own {
		if l.Policy.UnknownClients == policy.UnknownRefuse {
			e.add(formKey{limit: l})
		}
		for _, r := range l.Rates {
			e.add(formKey{l, r, r.Rule})
			if len(e.shadows) < maxForms {
				e.shadows[r] = outcome("would_refuse", r.Limit, r)
			}
		}
		return
	}
	for _, o := range l.Overrides {
		for i, r := range o.Rates {
			if r != nil && i < len(l.Rates) {
				e.add(formKey{l, l.Rates[i], r.Rule})
				e.add(formKey{l, r, r.Rule})
			}
		}
	}
}

func (e *Encoder) add(k formKey) {
	if _, ok := e.forms[k]; !ok && len(e.forms) < maxForms {
		e.forms[k] = newForm(k)
	}
}

func (e *Encoder) form(a *check.Answer) *form {
	k := keyFor(a)
	if f, ok := e.forms[k]; ok {
		return f
	}
	return newForm(k)
}

// Append appends the CheckResponse of an answer. a is as a Checker made it: its policy is its limit's.
// ok is false, and nothing appended, where a is no answer: it failed, or names no limit that refused.
func (e *Encoder) Append(dst []byte, a *check.Answer, c content.Caller) (_ []byte, ok bool) {
	switch {
	case a.Failed() || !a.Allow() && (a.Limit == nil || a.Policy == nil || (a.Rate == nil) != (a.Rule == nil)):
		return dst, false
	case a.Allow():
		return e.allowed(dst, a), true
	default:
		return e.refused(dst, a, c), true
	}
}

func (e *Encoder) allowed(dst []byte, a *check.Answer) []byte {
	shown := a.Limit != nil && a.Rate != nil && a.Rule != nil && a.Policy != nil && a.Policy.Response.Headers != policy.HeadersNone
	if shown {
		dst = append(dst, okStatus...)
		dst = protowire.AppendTag(dst, okField, protowire.BytesType)
		at := len(dst)
		f := e.form(a)
		dst = append(dst, f.okAmount...)
		dst = prefixed(f.appendNumbers(dst, okHeaders, a), at)
	} else {
		dst = append(dst, plainOK...)
	}
	if a.WouldRefuse == nil {
		return dst
	}
	if b, ok := e.shadows[a.WouldRefuse]; ok {
		return append(dst, b...)
	}
	return append(dst, outcome("would_refuse", a.WouldRefuse.Limit, a.WouldRefuse)...)
}

func (e *Encoder) refused(dst []byte, a *check.Answer, c content.Caller) []byte {
	f := e.form(a)
	dst = append(dst, refusedStatus...)
	dst = protowire.AppendTag(dst, deniedField, protowire.BytesType)
	at := len(dst)
	dst = append(dst, f.status...)
	if a.Outcome == metrics.Refused {
		dst = appendNumber(dst, deniedHeaders, "retry-after", "", content.RetryAfter(a.RetryAfter, a.Random))
		dst = append(dst, f.deniedAmount...)
		dst = f.appendNumbers(dst, deniedHeaders, a)
	}
	if c.GRPC {
		dst = append(dst, f.grpc...)
	} else {
		dst = append(dst, f.http...)
		if f.cors && content.PlainOrigin(c.Origin) {
			dst = appendCORS(dst, c.Origin)
		}
	}
	return append(prefixed(dst, at), f.metadata...)
}

// appendNumbers appends the headers of the quota that change from one request to the next.
func (f *form) appendNumbers(dst []byte, num protowire.Number, a *check.Answer) []byte {
	if a.Rate == nil {
		return dst
	}
	remaining, reset := content.Units(float64(a.Remaining)), content.Seconds(a.Reset)
	switch f.style {
	case policy.HeadersIETF:
		return appendItemHeader(dst, num, f.item, remaining, reset)
	case policy.HeadersXRateLimit:
		dst = appendNumber(dst, num, "x-ratelimit-remaining", "", remaining)
		return appendNumber(dst, num, "x-ratelimit-reset", "", reset)
	default:
		return dst
	}
}

// appendCORS lets a page read the refusal: without these a browser reports a network error.
func appendCORS(dst []byte, origin string) []byte {
	dst = appendHeader(dst, deniedHeaders, "access-control-allow-origin", origin, nil)
	dst = appendHeader(dst, deniedHeaders, "access-control-expose-headers", content.Exposed, nil)
	return appendHeader(dst, deniedHeaders, "vary", "Origin", nil)
}
