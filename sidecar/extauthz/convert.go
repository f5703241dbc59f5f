package extauthz

import (
	"net/netip"
	"strconv"
	"unsafe"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirproxy/weir/sidecar/match"
)

const (
	targetExtension = "weir.target"
	jwtFilter       = "envoy.filters.http.jwt_authn"
)

// convert views a check as a request. It copies no text; raw is memory for headers in raw form, given
// back grown. ok is false where the check is not about an HTTP request.
func convert(c *authv3.CheckRequest, req *match.Request, raw []match.Header) (_ []match.Header, ok bool) {
	attributes := c.GetAttributes()
	http := attributes.GetRequest().GetHttp()
	if http == nil {
		return raw, false
	}
	raw = rawHeaders(http.GetHeaderMap(), raw[:0])
	*req = match.Request{
		Method:    http.GetMethod(),
		Path:      http.GetPath(),
		Host:      http.GetHost(),
		Headers:   match.Headers{Joined: http.GetHeaders(), Raw: raw},
		Peer:      address(attributes.GetSource().GetAddress()),
		Principal: attributes.GetSource().GetPrincipal(),
		Target:    attributes.GetContextExtensions()[targetExtension],
	}
	if payloads := attributes.GetMetadataContext().GetFilterMetadata()[jwtFilter]; payloads != nil {
		req.Claims = claims{payloads}
	}
	return raw, true
}

func rawHeaders(m *corev3.HeaderMap, into []match.Header) []match.Header {
	for _, h := range m.GetHeaders() {
		value := h.GetValue()
		if b := h.GetRawValue(); len(b) > 0 {
			value = unsafe.String(unsafe.SliceData(b), len(b)) // the message outlives the check, and nobody writes to it
		}
		into = append(into, match.Header{Name: h.GetKey(), Value: value})
	}
	return into
}

func address(a *corev3.Address) netip.Addr {
	addr, _ := netip.ParseAddr(a.GetSocketAddress().GetAddress())
	return addr
}

// claims are those of a verified token, as the jwt_authn filter leaves them: by the name its
// configuration chose for the payload. Where several payloads have a claim, the one of the name that
// sorts first counts.
type claims struct{ payloads *structpb.Struct }

// Claim implements match.Claims.
func (c claims) Claim(name string) (value string, ok bool) {
	found := ""
	for payload, v := range c.payloads.GetFields() {
		claim, has := v.GetStructValue().GetFields()[name]
		if !has || ok && payload > found {
			continue
		}
		if text, is := claimText(claim); is {
			value, found, ok = text, payload, true
		}
	}
	return value, ok
}

// claimText is a scalar claim as text; lists and objects have none.
func claimText(v *structpb.Value) (string, bool) {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return k.StringValue, true
	case *structpb.Value_NumberValue:
		return strconv.FormatFloat(k.NumberValue, 'f', -1, 64), true
	case *structpb.Value_BoolValue:
		return strconv.FormatBool(k.BoolValue), true
	default:
		return "", false
	}
}
