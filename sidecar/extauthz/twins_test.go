package extauthz

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// byMatch answers by which counters a request has: as sure a sign of what a server read of it as there is. It answers each
// request alike.
type byMatch struct {
	matcher  *match.Matcher
	policies []*policy.Policy
}

func (b byMatch) Prepare(f func(*check.Snapshot)) {
	f(&check.Snapshot{Matcher: b.matcher, Policies: b.policies})
}

func (b byMatch) CheckBy(_ *check.Snapshot, req *match.Request, a *check.Answer) { b.Check(req, a) }

func (b byMatch) Check(req *match.Request, a *check.Answer) {
	var res match.Result
	b.matcher.Match(req, &res)
	*a = check.Answer{Outcome: metrics.NoLimit}
	if res.Refused != nil {
		a.Outcome, a.Policy, a.Limit = metrics.RefusedClient, res.Refused.Policy, res.Refused
		return
	}
	sum := uint64(0)
	for i := range res.Hits {
		h := &res.Hits[i]
		sum += h.ID.Lo + h.Cost
		a.Outcome, a.Policy, a.Limit, a.Rate, a.Rule = metrics.Allowed, h.Limit.Policy, h.Limit, h.Rate, h.Rule
		a.Remaining, a.Reset = sum%1000, time.Duration(sum%100)*time.Second //nolint:gosec // small
	}
	if sum%2 == 1 {
		a.Outcome, a.RetryAfter, a.Random = metrics.Refused, time.Duration(sum%9)*time.Second, sum //nolint:gosec // small
	}
	if sum%5 == 0 && a.Allow() && len(res.Hits) > 1 {
		a.WouldRefuse = res.Hits[0].Rate
	}
}

const twinSpec = `  client: [{source: JWTClaim, name: sub}, {source: Header, name: X-Api-Key}, {source: RemoteAddress, trustedHops: 1}]
  response: {cors: true}
  limits:
  - {name: each, counters: [Client], cost: {header: X-Cost, max: 9}, rates: [{limit: 10, window: 1s}]}
  - {name: paths, counters: [Endpoint, "Header:X-Tenant"], when: {paths: [{value: /a}, {value: /b, type: Prefix}]}, rates: [{limit: 10, window: 1m}]}
  - {name: plans, when: {headers: [{name: X-Plan, value: free}]}, rates: [{limit: 5, window: 1s}]}
`

// drawn is a check as an Envoy might send it, in either form of headers.
func drawn(t *rapid.T) *authv3.CheckRequest {
	name := rapid.SampledFrom([]string{"x-api-key", "x-tenant", "x-plan", "x-cost", "origin", "content-type", "x-forwarded-for", "x-other"})
	value := rapid.SampledFrom([]string{"", "a", "free", "7", "a,b", "https://shop.example", "application/grpc", "10.0.0.1, 10.0.0.2", "ünïcode"})
	http := &authv3.AttributeContext_HttpRequest{
		Method: rapid.SampledFrom([]string{"GET", "POST", "OPTIONS"}).Draw(t, "method"),
		Path:   rapid.SampledFrom([]string{"/a", "/b/1?x=1", "/%61", "//b/../a", "", "*"}).Draw(t, "path"),
		Host:   rapid.SampledFrom([]string{"", "shop.example:80"}).Draw(t, "host"),
	}
	if rapid.Bool().Draw(t, "joined") {
		http.Headers = rapid.MapOfN(name, value, 0, 6).Draw(t, "headers")
	} else {
		http.HeaderMap = &corev3.HeaderMap{}
		for range rapid.IntRange(0, 6).Draw(t, "headers") {
			http.HeaderMap.Headers = append(http.HeaderMap.Headers,
				&corev3.HeaderValue{Key: name.Draw(t, "name"), RawValue: []byte(value.Draw(t, "value"))})
		}
	}
	c := full()
	c.Attributes.Request.Http = http
	switch rapid.IntRange(0, 2).Draw(t, "token") {
	case 0:
		c.Attributes.MetadataContext = nil
	case 1:
		payload, _ := structpb.NewStruct(map[string]any{"p": map[string]any{"sub": value.Draw(t, "sub")}})
		c.Attributes.MetadataContext.FilterMetadata[jwtFilter] = payload
	}
	return c
}

// The same checks, the same answers: the own server against grpc-go with the generated messages.
func TestBothServersAnswerAlike(t *testing.T) {
	p := policyOf(t, twinSpec)
	checker := byMatch{matcher(t, p), []*policy.Policy{p}}
	own, _, _ := served(t, Own, checker)
	other, _, _ := served(t, GRPC, checker)
	outcomes := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		in := drawn(t)
		got, gotErr := authv3.NewAuthorizationClient(own).Check(context.Background(), in)
		want, wantErr := authv3.NewAuthorizationClient(other).Check(context.Background(), in)
		if status.Code(gotErr) != status.Code(wantErr) || !proto.Equal(got, want) {
			t.Fatalf("%v\nown:     %v, %v\ngrpc-go: %v, %v", in, got, gotErr, want, wantErr)
		}
		outcomes[fmt.Sprintf("%T %v", got.GetHttpResponse(), got.GetDynamicMetadata() != nil)]++
	})
	if len(outcomes) < 3 {
		t.Errorf("only %v: the test proves little", outcomes)
	}
}

// verbatim passes bytes as they are.
type verbatim struct{}

func (verbatim) Name() string { return "verbatim" }

func (verbatim) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (verbatim) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = verbatim{}

// What is no CheckRequest is refused with the same code by both.
func TestBothServersRefuseWhatIsNoCheck(t *testing.T) {
	whole, err := proto.Marshal(full())
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, kind Kind) {
		conn, _, _ := served(t, kind, &byPath{})
		for name, tt := range map[string]struct {
			in   []byte
			want string
		}{
			"nothing":       {nil, "InvalidArgument"},
			"cut short":     {whole[:len(whole)-1], "Internal"},
			"no protobuf":   {[]byte("\xff\xff\xff"), "Internal"},
			"no UTF-8":      {[]byte("\x0a\x07\x22\x05\x12\x03\x12\x01\xff"), "Internal"},
			"a whole check": {whole, "OK"},
		} {
			var out []byte
			err := conn.Invoke(t.Context(), checkMethod, tt.in, &out, grpc.ForceCodecV2(verbatim{}))
			if got := status.Code(err).String(); got != tt.want {
				t.Errorf("%s: %s (%v), want %s", name, got, err, tt.want)
			}
		}
	})
}
