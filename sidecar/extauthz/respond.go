package extauthz

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// The registered problem types of draft-ietf-httpapi-ratelimit-headers-10 and RFC 9457.
const (
	quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	blankProblem  = "about:blank"
)

// caller is what an answer's form depends on, besides the decision.
type caller struct {
	origin string // of a browser; "" if none
	grpc   bool
}

// responder makes check responses. Its plain OK is shared and never changed.
type responder struct{ ok *authv3.CheckResponse }

func newResponder() *responder {
	return &responder{ok: &authv3.CheckResponse{
		Status:       &rpcstatus.Status{Code: int32(codes.OK)},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{}},
	}}
}

// respond makes the answer's message. The answer is not Failed.
func (r *responder) respond(a *check.Answer, c caller) *authv3.CheckResponse {
	if !a.Allow() {
		return refused(a, c)
	}
	if a.WouldRefuse == nil && (a.Rate == nil || a.Policy.Response.Headers == policy.HeadersNone) {
		return r.ok
	}
	var h headers
	h.quotaFields(a)
	res := &authv3.CheckResponse{
		Status:       r.ok.Status,
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{ResponseHeadersToAdd: h}},
	}
	if a.WouldRefuse != nil {
		res.DynamicMetadata = metadata("would_refuse", a.WouldRefuse.Limit, a.WouldRefuse)
	}
	return res
}

func refused(a *check.Answer, c caller) *authv3.CheckResponse {
	status := int32(a.Policy.Response.Status) //nolint:gosec // 400..599 by validation
	if status == 0 {
		status = 429
	}
	var h headers
	if a.Outcome == metrics.Refused {
		h.set("retry-after", strconv.FormatInt(retryAfter(a.RetryAfter, a.Random), 10))
		h.quotaFields(a)
	}
	denied := &authv3.DeniedHttpResponse{Status: &typev3.HttpStatus{Code: typev3.StatusCode(status)}}
	if c.grpc {
		// Envoy makes UNAVAILABLE of a 429, which clients retry at once, unless grpc-status is set;
		// it puts the body into grpc-message.
		h.set("grpc-status", strconv.Itoa(int(codes.ResourceExhausted)))
		denied.Body = sentence(a)
	} else {
		h.set("content-type", "application/problem+json")
		h.cors(a, c)
		denied.Body = problem(a, status)
	}
	denied.Headers = h
	return &authv3.CheckResponse{
		Status:          &rpcstatus.Status{Code: int32(codes.ResourceExhausted)},
		HttpResponse:    &authv3.CheckResponse_DeniedResponse{DeniedResponse: denied},
		DynamicMetadata: metadata("refused", a.Limit, a.Rate),
	}
}

// cors lets a page read the refusal: without these a browser reports a network error.
func (h *headers) cors(a *check.Answer, c caller) {
	if !a.Policy.Response.CORS || !plainOrigin(c.origin) {
		return
	}
	h.set("access-control-allow-origin", c.origin)
	h.set("access-control-expose-headers",
		"Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset")
	h.set("vary", "Origin")
}

// plainOrigin holds of what a browser sends: visible ASCII. Nothing else is echoed.
func plainOrigin(s string) bool {
	return s != "" && len(s) <= 512 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' })
}

type problemBody struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int32    `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies,omitempty"`
	Policy   string   `json:"policy"`
	Limit    string   `json:"limit,omitempty"`
	Rate     string   `json:"rate,omitempty"`
}

// problem is the body of RFC 9457; it names the limit that refused and nothing of the client.
func problem(a *check.Answer, status int32) string {
	p := problemBody{
		Type: blankProblem, Title: "Client not identified", Status: status, Detail: sentence(a),
		Policy: a.Policy.Name, Limit: a.Limit.Name,
	}
	if a.Rate != nil {
		p.Type, p.Title, p.Rate = quotaExceeded, "Quota exceeded", a.Rate.Title
		p.Violated = []string{limitName(a.Limit)}
	}
	b, err := json.Marshal(p)
	if err != nil {
		return "" // a struct of strings and a number encodes
	}
	return string(b)
}

func sentence(a *check.Answer) string {
	if a.Rate == nil {
		return fmt.Sprintf("Limit %s of policy %s refuses requests that do not say who calls.", a.Limit.Name, a.Policy.Name)
	}
	return fmt.Sprintf("Limit %s of policy %s allows %s.", a.Limit.Name, a.Policy.Name, a.Rate.Title)
}

// metadata names the limit for access logs and later filters, below envoy.filters.http.ext_authz.
func metadata(outcome string, l *policy.Limit, r *policy.Rate) *structpb.Struct {
	fields := map[string]*structpb.Value{
		"weir_outcome": structpb.NewStringValue(outcome),
		"weir_policy":  structpb.NewStringValue(l.Policy.Name),
		"weir_limit":   structpb.NewStringValue(l.Name),
	}
	if r != nil {
		fields["weir_rate"] = structpb.NewStringValue(r.Title)
	}
	return &structpb.Struct{Fields: fields}
}
