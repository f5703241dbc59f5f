package wire

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/extauthz/content"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// What Scan and Encoder are held to: the same by the generated messages, plainly.

// convert views a decoded check as a request; false where it is not about an HTTP request.
func convert(c *authv3.CheckRequest, req *match.Request) bool {
	attributes := c.GetAttributes()
	http := attributes.GetRequest().GetHttp()
	if http == nil {
		return false
	}
	*req = match.Request{
		Method: http.GetMethod(), Path: http.GetPath(), Host: http.GetHost(),
		Headers:   match.Headers{Joined: http.GetHeaders()},
		Principal: attributes.GetSource().GetPrincipal(),
		Target:    attributes.GetContextExtensions()["weir.target"],
	}
	req.Peer, _ = netip.ParseAddr(attributes.GetSource().GetAddress().GetSocketAddress().GetAddress())
	for _, h := range http.GetHeaderMap().GetHeaders() {
		value := h.GetValue()
		if len(h.GetRawValue()) > 0 {
			value = string(h.GetRawValue())
		}
		req.Headers.Raw = append(req.Headers.Raw, match.Header{Name: h.GetKey(), Value: value})
	}
	if payloads := payloadsOf(c); payloads != nil {
		req.Claims = decodedClaims{payloads}
	}
	return true
}

func payloadsOf(c *authv3.CheckRequest) *structpb.Struct {
	return c.GetAttributes().GetMetadataContext().GetFilterMetadata()["envoy.filters.http.jwt_authn"]
}

type decodedClaims struct{ payloads *structpb.Struct }

func (c decodedClaims) Claim(name string) (value string, ok bool) {
	found := ""
	for payload, v := range c.payloads.GetFields() {
		claim := v.GetStructValue().GetFields()[name]
		if ok && payload > found {
			continue
		}
		switch k := claim.GetKind().(type) {
		case *structpb.Value_StringValue:
			value, found, ok = k.StringValue, payload, true
		case *structpb.Value_NumberValue:
			value, found, ok = strconv.FormatFloat(k.NumberValue, 'f', -1, 64), payload, true
		case *structpb.Value_BoolValue:
			value, found, ok = strconv.FormatBool(k.BoolValue), payload, true
		}
	}
	return value, ok
}

// respond makes an answer's message. Amounts and times are the package's own: golden files hold those.
func respond(a *check.Answer, c content.Caller) *authv3.CheckResponse {
	if !a.Allow() {
		return refuse(a, c)
	}
	res := &authv3.CheckResponse{
		Status:       &rpcstatus.Status{},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{ResponseHeadersToAdd: quotaHeaders(a)}},
	}
	if r := a.WouldRefuse; r != nil {
		res.DynamicMetadata = named("would_refuse", r.Limit, r)
	}
	return res
}

func refuse(a *check.Answer, c content.Caller) *authv3.CheckResponse {
	status := a.Policy.Response.Status
	if status == 0 {
		status = 429
	}
	denied := &authv3.DeniedHttpResponse{Status: &typev3.HttpStatus{Code: typev3.StatusCode(status)}}
	if a.Outcome == metrics.Refused {
		denied.Headers = append(headers("retry-after", fmt.Sprint(content.RetryAfter(a.RetryAfter, a.Random))), quotaHeaders(a)...)
	}
	title, detail := "Client not identified", "refuses requests that do not say who calls."
	if a.Rate != nil {
		title, detail = "Quota exceeded", "allows "+a.Rate.Title+"."
	}
	detail = fmt.Sprintf("Limit %s of policy %s %s", a.Limit.Name, a.Policy.Name, detail)
	if c.GRPC {
		denied.Body = detail
		denied.Headers = append(denied.Headers, headers("grpc-status", "8")...)
	} else {
		denied.Body = body(a, title, detail, status)
		denied.Headers = append(denied.Headers, headers("content-type", "application/problem+json")...)
		if a.Policy.Response.CORS && content.PlainOrigin(c.Origin) {
			denied.Headers = append(denied.Headers, headers("access-control-allow-origin", c.Origin, "access-control-expose-headers",
				"Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset", "vary", "Origin")...)
		}
	}
	return &authv3.CheckResponse{
		Status:          &rpcstatus.Status{Code: 8},
		HttpResponse:    &authv3.CheckResponse_DeniedResponse{DeniedResponse: denied},
		DynamicMetadata: named("refused", a.Limit, a.Rate),
	}
}

func body(a *check.Answer, title, detail string, status int) string {
	b := struct {
		Type     string   `json:"type"`
		Title    string   `json:"title"`
		Status   int      `json:"status"`
		Detail   string   `json:"detail"`
		Violated []string `json:"violated-policies,omitempty"`
		Policy   string   `json:"policy"`
		Limit    string   `json:"limit,omitempty"`
		Rate     string   `json:"rate,omitempty"`
	}{Type: "about:blank", Title: title, Status: status, Detail: detail, Policy: a.Policy.Name, Limit: a.Limit.Name}
	if a.Rate != nil {
		b.Type = "https://iana.org/assignments/http-problem-types#quota-exceeded"
		b.Violated, b.Rate = []string{shortName(a.Limit)}, a.Rate.Title
	}
	out, _ := json.Marshal(b)
	return string(out)
}

func shortName(l *policy.Limit) string {
	parts := strings.Split(l.Policy.Name, "/")
	return parts[len(parts)-1] + "/" + l.Name
}

func quotaHeaders(a *check.Answer) []*corev3.HeaderValueOption {
	if a.Rate == nil {
		return nil
	}
	q, w := content.Quantity(a.Rule)
	left, reset := content.Units(float64(a.Remaining)), content.Seconds(a.Reset)
	switch a.Policy.Response.Headers {
	case policy.HeadersIETF:
		item := fmt.Sprintf("%q;q=%d", shortName(a.Limit), q)
		if w > 0 {
			item += fmt.Sprintf(";w=%d", w)
		}
		return headers("ratelimit-policy", item, "ratelimit", fmt.Sprintf("%q;r=%d;t=%d", shortName(a.Limit), left, reset))
	case policy.HeadersXRateLimit:
		return headers("x-ratelimit-limit", fmt.Sprint(q), "x-ratelimit-remaining", fmt.Sprint(left), "x-ratelimit-reset", fmt.Sprint(reset))
	default:
		return nil
	}
}

func headers(namesAndValues ...string) (out []*corev3.HeaderValueOption) {
	for i := 0; i < len(namesAndValues); i += 2 {
		out = append(out, &corev3.HeaderValueOption{
			Header:       &corev3.HeaderValue{Key: namesAndValues[i], Value: namesAndValues[i+1]},
			AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		})
	}
	return out
}

func named(outcome string, l *policy.Limit, r *policy.Rate) *structpb.Struct {
	fields := map[string]any{"weir_outcome": outcome, "weir_policy": l.Policy.Name, "weir_limit": l.Name}
	if r != nil {
		fields["weir_rate"] = r.Title
	}
	s, err := structpb.NewStruct(fields)
	if err != nil {
		panic(err)
	}
	return s
}
