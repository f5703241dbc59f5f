package wire

import (
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/extauthz/content"
)

// resourceExhausted is the gRPC code of a refusal.
const resourceExhausted = 8

// form is what all answers of a rate say, encoded. It is never changed.
type form struct {
	style policy.HeaderStyle
	// amount is a header: ratelimit-policy, or x-ratelimit-limit. It is appended with either field number.
	okAmount, deniedAmount []byte
	item                   string // of ratelimit, up to the first number

	status     []byte // of a refusal
	http, grpc []byte // headers and body of a refusal, by caller
	cors       bool
	metadata   []byte
}

// formKey is what a form depends on. Rate and rule are nil where the client is refused as unknown.
type formKey struct {
	limit *policy.Limit
	rate  *policy.Rate
	rule  *quota.Rule
}

func keyFor(a *check.Answer) formKey { return formKey{a.Limit, a.Rate, a.Rule} }

func newForm(k formKey) *form {
	p := k.limit.Policy
	f := &form{style: p.Response.Headers, cors: p.Response.CORS, metadata: outcome("refused", k.limit, k.rate)}
	if k.rule != nil {
		f.amounts(k)
	}
	f.refusal(k)
	return f
}

// amounts encodes what the headers say of the quota, in the style that the policy chose.
func (f *form) amounts(k formKey) {
	q, w := content.Quantity(k.rule)
	var name, value string
	switch f.style {
	case policy.HeadersIETF:
		// Items of draft-ietf-httpapi-ratelimit-headers-10: "name";q=100;w=1, the window left out where
		// it has no fixed length; and "name";r=5;t=1.
		quoted := strconv.Quote(content.LimitName(k.limit)) // names are validated: plain ASCII
		f.item = quoted + ";r="
		name, value = "ratelimit-policy", quoted+";q="+strconv.FormatInt(q, 10)
		if w > 0 {
			value += ";w=" + strconv.FormatInt(w, 10)
		}
	case policy.HeadersXRateLimit:
		name, value = "x-ratelimit-limit", strconv.FormatInt(q, 10)
	default:
		return
	}
	f.okAmount = appendHeader(nil, okHeaders, name, value, nil)
	f.deniedAmount = appendHeader(nil, deniedHeaders, name, value, nil)
}

func (f *form) refusal(k formKey) {
	code := protowire.AppendTag(nil, 1, protowire.VarintType)
	code = protowire.AppendVarint(code, uint64(content.Status(k.limit.Policy))) //nolint:gosec // 400..599 by validation
	f.status = appendText(nil, deniedStatus, code)

	f.http = appendHeader(nil, deniedHeaders, "content-type", "application/problem+json", nil)
	f.http = appendText(f.http, deniedBody, content.Problem(k.limit, k.rate))
	// Envoy makes UNAVAILABLE of a 429, which clients retry at once, unless grpc-status is set; it puts
	// the body into grpc-message.
	f.grpc = appendNumber(nil, deniedHeaders, "grpc-status", "", resourceExhausted)
	f.grpc = appendText(f.grpc, deniedBody, content.Sentence(k.limit, k.rate))
}

// outcome is dynamic_metadata: it names the limit for access logs and later filters, below
// envoy.filters.http.ext_authz.
func outcome(what string, l *policy.Limit, r *policy.Rate) []byte {
	b := appendItem(nil, "weir_outcome", what)
	b = appendItem(b, "weir_policy", l.Policy.Name)
	b = appendItem(b, "weir_limit", l.Name)
	if r != nil {
		b = appendItem(b, "weir_rate", r.Title)
	}
	return appendText(nil, metadataField, b)
}
