package extauthz

import (
	"strconv"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/extauthz/content"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// responder makes check responses. Its plain OK is shared and never changed.
type responder struct{ ok *authv3.CheckResponse }

func newResponder() *responder {
	return &responder{ok: &authv3.CheckResponse{
		Status:       &rpcstatus.Status{Code: int32(codes.OK)},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{}},
	}}
}

// respond makes the answer's message. The answer is not Failed.
func (r *responder) respond(a *check.Answer, c content.Caller) *authv3.CheckResponse {
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

func refused(a *check.Answer, c content.Caller) *authv3.CheckResponse {
	status := int32(content.Status(a.Policy)) //nolint:gosec // 400..599 by validation
	var h headers
	if a.Outcome == metrics.Refused {
		h.set("retry-after", strconv.FormatInt(content.RetryAfter(a.RetryAfter, a.Random), 10))
		h.quotaFields(a)
	}
	denied := &authv3.DeniedHttpResponse{Status: &typev3.HttpStatus{Code: typev3.StatusCode(status)}}
	if c.GRPC {
		// Envoy makes UNAVAILABLE of a 429, which clients retry at once, unless grpc-status is set;
		// it puts the body into grpc-message.
		h.set("grpc-status", strconv.Itoa(int(codes.ResourceExhausted)))
		denied.Body = content.Sentence(a.Limit, a.Rate)
	} else {
		h.set("content-type", "application/problem+json")
		h.cors(a, c)
		denied.Body = string(content.Problem(a.Limit, a.Rate))
	}
	denied.Headers = h
	return &authv3.CheckResponse{
		Status:          &rpcstatus.Status{Code: int32(codes.ResourceExhausted)},
		HttpResponse:    &authv3.CheckResponse_DeniedResponse{DeniedResponse: denied},
		DynamicMetadata: metadata("refused", a.Limit, a.Rate),
	}
}

// cors lets a page read the refusal: without these a browser reports a network error.
func (h *headers) cors(a *check.Answer, c content.Caller) {
	if !a.Policy.Response.CORS || !content.PlainOrigin(c.Origin) {
		return
	}
	h.set("access-control-allow-origin", c.Origin)
	h.set("access-control-expose-headers",
		content.Exposed)
	h.set("vary", "Origin")
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
