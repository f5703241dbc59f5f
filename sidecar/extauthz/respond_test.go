package extauthz

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/extauthz/content"
	"github.com/weirproxy/weir/sidecar/metrics"
)

var update = flag.Bool("update", false, "write the golden files anew")

// limited is an answer under one limit of policy shop/orders.
func limited(rule quota.Rule, title string, response policy.Response, a check.Answer) *check.Answer {
	p := &policy.Policy{Name: "shop/orders", Response: response}
	l := &policy.Limit{Policy: p, Name: "each-client"}
	a.Policy, a.Limit, a.Rule = p, l, &rule
	a.Rate = &policy.Rate{Limit: l, Rule: &rule, Title: title}
	return &a
}

var (
	perSecond = quota.Rule{Algorithm: quota.SlidingWindow, Limit: 100, Window: time.Second}
	bucket    = quota.Rule{Algorithm: quota.TokenBucket, Limit: 5, Window: 500 * time.Millisecond, Burst: 40}
	daily     = quota.Rule{Algorithm: quota.Calendar, Limit: 100_000, Period: quota.Day}
	monthly   = quota.Rule{Algorithm: quota.Calendar, Limit: 1_000_000, Period: quota.Month}
)

func answers() map[string]struct {
	answer *check.Answer
	caller content.Caller
} {
	type c = struct {
		answer *check.Answer
		caller content.Caller
	}
	ietf := policy.Response{Status: 429}
	refusal := check.Answer{Outcome: metrics.Refused, RetryAfter: 300 * time.Millisecond, Reset: 900 * time.Millisecond}
	shadow := limited(perSecond, "100/1s", ietf, check.Answer{Outcome: metrics.Allowed, Remaining: 7, Reset: time.Second})
	shadow.WouldRefuse = &policy.Rate{Limit: &policy.Limit{Policy: shadow.Policy, Name: "writes"}, Title: "20/1s"}
	unknown := limited(perSecond, "100/1s", ietf, check.Answer{Outcome: metrics.RefusedClient})
	unknown.Rate, unknown.Rule = nil, nil
	return map[string]c{
		"allowed_no_policy": {&check.Answer{Outcome: metrics.NoPolicy}, content.Caller{}},
		"allowed":           {limited(perSecond, "100/1s", ietf, check.Answer{Remaining: 41, Reset: 1500 * time.Millisecond}), content.Caller{}},
		"allowed_no_headers": {limited(perSecond, "100/1s", policy.Response{Headers: policy.HeadersNone},
			check.Answer{Remaining: 41}), content.Caller{}},
		"allowed_would_refuse": {shadow, content.Caller{}},
		"refused":              {limited(perSecond, "100/1s", ietf, refusal), content.Caller{}},
		"refused_xratelimit":   {limited(bucket, "5/500ms", policy.Response{Headers: policy.HeadersXRateLimit, Status: 503}, refusal), content.Caller{}},
		"refused_calendar": {limited(daily, "100000/Day", ietf,
			check.Answer{Outcome: metrics.Refused, RetryAfter: 5 * time.Hour, Reset: 5 * time.Hour, Random: 1 << 40}), content.Caller{}},
		"refused_month": {limited(monthly, "1000000/Month", ietf,
			check.Answer{Outcome: metrics.Refused, RetryAfter: time.Hour, Reset: time.Hour}), content.Caller{}},
		"refused_cors": {limited(perSecond, "100/1s", policy.Response{Status: 429, CORS: true}, refusal),
			content.Caller{Origin: "https://shop.example"}},
		"refused_cors_without_origin": {limited(perSecond, "100/1s", policy.Response{Status: 429, CORS: true}, refusal), content.Caller{}},
		"refused_grpc":                {limited(perSecond, "100/1s", ietf, refusal), content.Caller{GRPC: true}},
		"refused_client":              {unknown, content.Caller{}},
	}
}

// Cases 8, 21, 22: the whole of each kind of answer. CORS headers by policy, gRPC callers get
// RESOURCE_EXHAUSTED, and headers, body and metadata name the limit that refused.
func TestCase08Case21Case22AnswersAreGolden(t *testing.T) {
	r := newResponder()
	for name, c := range answers() {
		t.Run(name, func(t *testing.T) { golden(t, name, r.respond(c.answer, c.caller)) })
	}
}

func golden(t *testing.T, name string, res *authv3.CheckResponse) {
	t.Helper()
	raw, err := protojson.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, raw, "", "  "); err != nil { // protojson's own spacing is random on purpose
		t.Fatal(err)
	}
	got.WriteByte('\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s\ngot  %s\nwant %s", path, got.Bytes(), want)
	}
}

func TestEveryHeaderSaysHowItIsAppended(t *testing.T) {
	r := newResponder()
	for name, c := range answers() {
		res := r.respond(c.answer, c.caller)
		for _, h := range append(res.GetDeniedResponse().GetHeaders(), res.GetOkResponse().GetResponseHeadersToAdd()...) {
			if h.GetAppendAction() == 0 {
				t.Errorf("%s: %s is appended to what is there", name, h.GetHeader().GetKey())
			}
		}
	}
}

func TestRetryAfterIsSpreadButNeverEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wait := time.Duration(rapid.Int64Range(-int64(time.Second), int64(400*24*time.Hour)).Draw(t, "wait"))
		got := time.Duration(content.RetryAfter(wait, rapid.Uint64().Draw(t, "random"))) * time.Second
		if got < wait || got < time.Second || got > max(wait, 0)+max(min(wait/4, time.Minute), time.Second)+time.Second {
			t.Fatalf("retry after %v for a wait of %v", got, wait)
		}
	})
}

func TestOriginsThatNoBrowserSendsAreNotEchoed(t *testing.T) {
	for origin, want := range map[string]bool{
		"https://shop.example": true, "null": true, "": false, "https://a,https://b": false,
		"https://a\r\nset-cookie: x": false, "https://\xff": false, "a b": false, strings.Repeat("a", 513): false,
	} {
		if got := content.PlainOrigin(origin); got != want {
			t.Errorf("%.30q: %v", origin, got)
		}
	}
}

func TestTheProblemIsWellFormedWhateverTheNames(t *testing.T) {
	a := limited(perSecond, `1"00/1s`+"\n", policy.Response{Status: 429}, check.Answer{Outcome: metrics.Refused})
	var body map[string]any
	if err := json.Unmarshal(content.Problem(a.Limit, a.Rate), &body); err != nil || body["rate"] != `1"00/1s`+"\n" {
		t.Errorf("%v: %v", body, err)
	}
}
