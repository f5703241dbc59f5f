package extauthz

import (
	"math"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/check"
)

// headers collects the header options of an answer. append_action is always set: unset, a filter
// appends to what the service said.
type headers []*corev3.HeaderValueOption

func (h *headers) set(name, value string) {
	*h = append(*h, &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, Value: value},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	})
}

// quotaFields tells the client of the answer's limit, in the style that the policy chose.
func (h *headers) quotaFields(a *check.Answer) {
	if a.Rate == nil || a.Policy == nil {
		return
	}
	q, w := quantity(a.Rule)
	switch a.Policy.Response.Headers {
	case policy.HeadersIETF:
		name := strconv.AppendQuote(nil, limitName(a.Limit)) // names are validated: plain ASCII
		h.set("ratelimit-policy", policyItem(name, q, w))
		h.set("ratelimit", limitItem(name, a))
	case policy.HeadersXRateLimit:
		h.set("x-ratelimit-limit", strconv.FormatInt(q, 10))
		h.set("x-ratelimit-remaining", strconv.FormatInt(units(float64(a.Remaining)), 10))
		h.set("x-ratelimit-reset", strconv.FormatInt(seconds(a.Reset), 10))
	}
}

// policyItem is a quota policy item of draft-ietf-httpapi-ratelimit-headers-10: "name";q=100;w=1.
// The window is left out where it has no fixed length.
func policyItem(name []byte, q, w int64) string {
	b := append(make([]byte, 0, 64), name...)
	b = append(b, ";q="...)
	b = strconv.AppendInt(b, q, 10)
	if w > 0 {
		b = append(b, ";w="...)
		b = strconv.AppendInt(b, w, 10)
	}
	return string(b)
}

// limitItem is a service limit item of the same draft: "name";r=5;t=1.
func limitItem(name []byte, a *check.Answer) string {
	b := append(make([]byte, 0, 64), name...)
	b = append(b, ";r="...)
	b = strconv.AppendInt(b, units(float64(a.Remaining)), 10)
	b = append(b, ";t="...)
	b = strconv.AppendInt(b, seconds(a.Reset), 10)
	return string(b)
}

// limitName names a limit to clients: policy name/limit name, without the namespace.
func limitName(l *policy.Limit) string {
	name := l.Policy.Name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	return name + "/" + l.Name
}

// quantity is the quota and its window in whole seconds, which is all that the fields can say: a
// window that is none is scaled to the next one. A month and a year have no fixed length: 0.
func quantity(r *quota.Rule) (q, w int64) {
	if r.Algorithm == quota.Calendar {
		return units(r.Limit), periodSeconds(r.Period)
	}
	w = seconds(r.Window)
	if r.Window <= 0 {
		return units(r.Limit), 0
	}
	return units(r.Limit * float64(w) / r.Window.Seconds()), w
}

func periodSeconds(p quota.Period) int64 {
	switch p {
	case quota.Hour:
		return 3600
	case quota.Day:
		return 86_400
	case quota.Week:
		return 604_800
	default:
		return 0
	}
}

// units is v rounded down, within what an integer of a structured field may be.
func units(v float64) int64 {
	return int64(min(math.Floor(max(v, 0)+1e-9), 999_999_999_999_999))
}

// seconds rounds up, and is at least 1: a client that waits so long does not come early.
func seconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// retryAfter spreads returning clients: up to a quarter of the wait, at least 1 s and at most 60 s,
// is added at random.
func retryAfter(d time.Duration, random uint64) int64 {
	d = max(d, 0)
	spread := min(max(d/4, time.Second), time.Minute)
	return seconds(d + time.Duration(random%uint64(spread))) //nolint:gosec // spread is positive
}
