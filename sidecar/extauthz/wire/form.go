package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/check"
)

// The registered problem types of draft-ietf-httpapi-ratelimit-headers-10 and RFC 9457.
const (
	quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	blankProblem  = "about:blank"
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
	q, w := quantity(k.rule)
	var name, value string
	switch f.style {
	case policy.HeadersIETF:
		// Items of draft-ietf-httpapi-ratelimit-headers-10: "name";q=100;w=1, the window left out where
		// it has no fixed length; and "name";r=5;t=1.
		quoted := strconv.Quote(limitName(k.limit)) // names are validated: plain ASCII
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
	status := k.limit.Policy.Response.Status
	if status == 0 {
		status = 429
	}
	code := protowire.AppendTag(nil, 1, protowire.VarintType)
	code = protowire.AppendVarint(code, uint64(status)) //nolint:gosec // 400..599 by validation
	f.status = appendText(nil, deniedStatus, code)

	f.http = appendHeader(nil, deniedHeaders, "content-type", "application/problem+json", nil)
	f.http = appendText(f.http, deniedBody, problem(k, status))
	// Envoy makes UNAVAILABLE of a 429, which clients retry at once, unless grpc-status is set; it puts
	// the body into grpc-message.
	f.grpc = appendNumber(nil, deniedHeaders, "grpc-status", "", resourceExhausted)
	f.grpc = appendText(f.grpc, deniedBody, sentence(k))
}

// limitName names a limit to clients: policy name/limit name, without the namespace.
func limitName(l *policy.Limit) string {
	name := l.Policy.Name
	return name[strings.LastIndexByte(name, '/')+1:] + "/" + l.Name
}

type problemBody struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies,omitempty"`
	Policy   string   `json:"policy"`
	Limit    string   `json:"limit,omitempty"`
	Rate     string   `json:"rate,omitempty"`
}

// problem is the body of RFC 9457; it names the limit that refused and nothing of the client.
func problem(k formKey, status int) []byte {
	p := problemBody{
		Type: blankProblem, Title: "Client not identified", Status: status, Detail: sentence(k),
		Policy: k.limit.Policy.Name, Limit: k.limit.Name,
	}
	if k.rate != nil {
		p.Type, p.Title, p.Rate = quotaExceeded, "Quota exceeded", k.rate.Title
		p.Violated = []string{limitName(k.limit)}
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil // a struct of strings and a number encodes
	}
	return b
}

func sentence(k formKey) string {
	if k.rate == nil {
		return fmt.Sprintf("Limit %s of policy %s refuses requests that do not say who calls.", k.limit.Name, k.limit.Policy.Name)
	}
	return fmt.Sprintf("Limit %s of policy %s allows %s.", k.limit.Name, k.limit.Policy.Name, k.rate.Title)
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
