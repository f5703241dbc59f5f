package extauthz

import (
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/extauthz/content"
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
	q, w := content.Quantity(a.Rule)
	switch a.Policy.Response.Headers {
	case policy.HeadersIETF:
		name := strconv.AppendQuote(nil, content.LimitName(a.Limit)) // names are validated: plain ASCII
		h.set("ratelimit-policy", policyItem(name, q, w))
		h.set("ratelimit", limitItem(name, a))
	case policy.HeadersXRateLimit:
		h.set("x-ratelimit-limit", strconv.FormatInt(q, 10))
		h.set("x-ratelimit-remaining", strconv.FormatInt(content.Units(float64(a.Remaining)), 10))
		h.set("x-ratelimit-reset", strconv.FormatInt(content.Seconds(a.Reset), 10))
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
	b = strconv.AppendInt(b, content.Units(float64(a.Remaining)), 10)
	b = append(b, ";t="...)
	b = strconv.AppendInt(b, content.Seconds(a.Reset), 10)
	return string(b)
}
