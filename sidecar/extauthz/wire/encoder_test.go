package wire

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/extauthz/content"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// asked is an answer and who gets it.
type asked struct {
	answer *check.Answer
	caller content.Caller
}

// limited is an answer under one limit of policy shop/orders.
func limited(rule quota.Rule, title string, response policy.Response, a check.Answer) *check.Answer {
	p := &policy.Policy{Name: "shop/orders", Response: response}
	l := &policy.Limit{Policy: p, Name: "each-client"}
	a.Policy, a.Limit, a.Rule = p, l, &rule
	a.Rate = &policy.Rate{Limit: l, Rule: &rule, Title: title}
	l.Rates = []*policy.Rate{a.Rate}
	p.Limits = []*policy.Limit{l}
	return &a
}

var (
	perSecond = quota.Rule{Algorithm: quota.SlidingWindow, Limit: 100, Window: time.Second}
	bucket    = quota.Rule{Algorithm: quota.TokenBucket, Limit: 5, Window: 500 * time.Millisecond, Burst: 40}
	daily     = quota.Rule{Algorithm: quota.Calendar, Limit: 100_000, Period: quota.Day}
	monthly   = quota.Rule{Algorithm: quota.Calendar, Limit: 1_000_000, Period: quota.Month}
)

// answers are those of the golden files, by name.
func answers() map[string]asked {
	ietf := policy.Response{Status: 429}
	cors := policy.Response{Status: 429, CORS: true}
	refusal := check.Answer{Outcome: metrics.Refused, RetryAfter: 300 * time.Millisecond, Reset: 900 * time.Millisecond}
	shadow := limited(perSecond, "100/1s", ietf, check.Answer{Remaining: 7, Reset: time.Second})
	writes := &policy.Limit{Policy: shadow.Policy, Name: "writes"}
	shadow.WouldRefuse = &policy.Rate{Limit: writes, Rule: &bucket, Title: "20/1s"}
	writes.Rates = []*policy.Rate{shadow.WouldRefuse}
	shadow.Policy.Limits = append(shadow.Policy.Limits, writes)
	unknown := limited(perSecond, "100/1s", ietf, check.Answer{Outcome: metrics.RefusedClient})
	unknown.Rate, unknown.Rule = nil, nil
	unknown.Policy.UnknownClients = policy.UnknownRefuse
	return map[string]asked{
		"allowed_no_policy": {answer: &check.Answer{Outcome: metrics.NoPolicy}},
		"allowed":           {answer: limited(perSecond, "100/1s", ietf, check.Answer{Remaining: 41, Reset: 1500 * time.Millisecond})},
		"allowed_no_headers": {answer: limited(perSecond, "100/1s", policy.Response{Headers: policy.HeadersNone},
			check.Answer{Remaining: 41})},
		"allowed_would_refuse": {answer: shadow},
		"refused":              {answer: limited(perSecond, "100/1s", ietf, refusal)},
		"refused_xratelimit": {answer: limited(bucket, "5/500ms",
			policy.Response{Headers: policy.HeadersXRateLimit, Status: 503}, refusal)},
		"refused_calendar": {answer: limited(daily, "100000/Day", ietf,
			check.Answer{Outcome: metrics.Refused, RetryAfter: 5 * time.Hour, Reset: 5 * time.Hour, Random: 1 << 40})},
		"refused_month": {answer: limited(monthly, "1000000/Month", ietf,
			check.Answer{Outcome: metrics.Refused, RetryAfter: time.Hour, Reset: time.Hour})},
		"refused_cors":                {limited(perSecond, "100/1s", cors, refusal), content.Caller{Origin: "https://shop.example"}},
		"refused_cors_without_origin": {answer: limited(perSecond, "100/1s", cors, refusal)},
		"refused_grpc":                {limited(perSecond, "100/1s", ietf, refusal), content.Caller{GRPC: true}},
		"refused_client":              {answer: unknown},
	}
}

// encoders are one with an answer's policy encoded ahead, and one without any.
func encoders(a *check.Answer) []*Encoder {
	var policies []*policy.Policy
	if a.Policy != nil {
		policies = append(policies, a.Policy)
	}
	return []*Encoder{NewEncoder(policies), {}}
}

func decoded(t fataler, e *Encoder, q asked) *authv3.CheckResponse {
	t.Helper()
	b, ok := e.Append([]byte("kept"), q.answer, q.caller)
	var got authv3.CheckResponse
	if !ok || !strings.HasPrefix(string(b), "kept") {
		t.Fatalf("%v, %q", ok, b)
	}
	if err := proto.Unmarshal(b[4:], &got); err != nil {
		t.Fatalf("%x: %v", b, err)
	}
	return &got
}

// The answers are those that the server's golden files fix.
func TestCase08Case21Case22AnswersAreTheGoldenOnes(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.json")
	all := answers()
	if err != nil || len(files) != len(all) {
		t.Fatalf("%d golden files (%v), %d answers", len(files), err, len(all))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var want authv3.CheckResponse
		if err := protojson.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		q, ok := all[strings.TrimSuffix(filepath.Base(file), ".json")]
		if !ok {
			t.Fatalf("no answer for %s", file)
		}
		for _, e := range encoders(q.answer) {
			if got := decoded(t, e, q); !proto.Equal(got, &want) {
				t.Errorf("%s:\n%v, want\n%v", file, got, &want)
			}
		}
	}
}

// name draws a name as validation lets pass; long ones need lengths of more than a byte.
func name(t *rapid.T, label string) string {
	return rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?`).Draw(t, label)
}

func answerOf(t *rapid.T) asked {
	rule := rapid.SampledFrom([]quota.Rule{perSecond, bucket, daily, monthly}).Draw(t, "rule")
	rule.Limit = float64(rapid.Int64Range(1, 1e15).Draw(t, "limit"))
	a := limited(rule, rapid.String().Draw(t, "title"), policy.Response{
		Headers: rapid.SampledFrom([]policy.HeaderStyle{policy.HeadersIETF, policy.HeadersXRateLimit, policy.HeadersNone}).Draw(t, "style"),
		Status:  rapid.SampledFrom([]int{0, 400, 429, 503, 599}).Draw(t, "status"),
		CORS:    rapid.Bool().Draw(t, "cors"),
	}, check.Answer{
		Outcome:   rapid.SampledFrom([]metrics.Outcome{metrics.Allowed, metrics.Uncounted, metrics.Refused, metrics.RefusedClient}).Draw(t, "outcome"),
		Remaining: rapid.Uint64().Draw(t, "remaining"), Random: rapid.Uint64().Draw(t, "random"),
		Reset:      time.Duration(rapid.Int64Range(-1, 1<<55).Draw(t, "reset")),
		RetryAfter: time.Duration(rapid.Int64Range(-1, 1<<55).Draw(t, "retry")),
	})
	a.Policy.Name, a.Limit.Name = name(t, "namespace")+"/"+name(t, "policy"), name(t, "name")
	if a.Outcome == metrics.RefusedClient || rapid.IntRange(0, 5).Draw(t, "no rate") == 0 {
		a.Rate, a.Rule = nil, nil
	} else if rapid.Bool().Draw(t, "overridden") {
		other := rule
		other.Limit = 7
		o := &policy.Rate{Limit: a.Limit, Rule: &other, Title: "7"}
		a.Limit.Overrides = []*policy.Override{{Unlimited: true, Rates: []*policy.Rate{nil}}, {Rates: []*policy.Rate{o}}}
		if a.Rule = &other; a.Outcome == metrics.Refused {
			a.Rate = o
		}
	}
	if a.Allow() && rapid.Bool().Draw(t, "shadow") {
		a.WouldRefuse = &policy.Rate{Limit: a.Limit, Title: rapid.String().Draw(t, "shadow title")}
	}
	return asked{a, content.Caller{
		GRPC:   rapid.Bool().Draw(t, "grpc"),
		Origin: rapid.SampledFrom([]string{"", "https://shop.example", "null", "a b", strings.Repeat("a", 512)}).Draw(t, "origin"),
	}}
}

func TestAnswersSayWhatTheGeneratedMessagesSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := answerOf(t)
		want := respond(q.answer, q.caller)
		for _, e := range encoders(q.answer) {
			if got := decoded(t, e, q); !proto.Equal(got, want) {
				t.Fatalf("%v, want\n%v", got, want)
			}
		}
	})
}

func TestWhatIsNoAnswerIsNotWritten(t *testing.T) {
	for _, o := range []metrics.Outcome{metrics.NotLoaded, metrics.Overloaded, metrics.Failed, metrics.Malformed, metrics.Refused} {
		if b, ok := NewEncoder(nil).Append(nil, &check.Answer{Outcome: o}, content.Caller{}); ok || len(b) > 0 {
			t.Errorf("%v by no limit: %x", o, b)
		}
	}
}

// Of an override, a pass names the limit's rate, and a refusal the override's: both are encoded ahead.
func TestOverridesAreEncodedAhead(t *testing.T) {
	a := limited(perSecond, "100/1s", policy.Response{}, check.Answer{})
	other := perSecond
	o := &policy.Rate{Limit: a.Limit, Rule: &other, Title: "7/1s"}
	a.Limit.Overrides = []*policy.Override{{Rates: []*policy.Rate{o}}}
	e := NewEncoder([]*policy.Policy{a.Policy})
	for _, k := range []formKey{{a.Limit, a.Rate, a.Rule}, {a.Limit, a.Rate, &other}, {a.Limit, o, &other}} {
		if e.forms[k] == nil {
			t.Errorf("%s of rule %p is not", k.rate.Title, k.rule)
		}
	}
}

// The table of what is encoded ahead is bounded, and answers do not depend on it.
func TestMoreRatesThanAreEncodedAhead(t *testing.T) {
	a := limited(perSecond, "100/1s", policy.Response{}, check.Answer{Outcome: metrics.Refused})
	for range maxForms {
		r := perSecond
		a.Limit.Overrides = append(a.Limit.Overrides, &policy.Override{
			Rates: []*policy.Rate{{Limit: a.Limit, Rule: &r, Title: "of an override"}},
		})
	}
	e := NewEncoder([]*policy.Policy{a.Policy})
	if len(e.forms) != maxForms || e.forms[keyFor(a)] == nil {
		t.Errorf("%d forms, the limit's own: %v", len(e.forms), e.forms[keyFor(a)] != nil)
	}
	a.Rate = a.Limit.Overrides[maxForms-1].Rates[0]
	a.Rule = a.Rate.Rule
	if got, want := decoded(t, e, asked{answer: a}), respond(a, content.Caller{}); !proto.Equal(got, want) {
		t.Errorf("%v, want\n%v", got, want)
	}
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

func TestTheProblemIsWellFormedWhateverTheTitle(t *testing.T) {
	a := limited(perSecond, `1"00/1s`+"\n", policy.Response{}, check.Answer{Outcome: metrics.Refused})
	got := decoded(t, NewEncoder(nil), asked{answer: a})
	var body map[string]any
	if err := json.Unmarshal([]byte(got.GetDeniedResponse().GetBody()), &body); err != nil || body["rate"] != `1"00/1s`+"\n" {
		t.Errorf("%v: %v", body, err)
	}
}

func TestAnswersAllocateNothing(t *testing.T) {
	dst := make([]byte, 0, 4096)
	for name, q := range answers() {
		e := encoders(q.answer)[0]
		if n := testing.AllocsPerRun(200, func() { _, _ = e.Append(dst, q.answer, q.caller) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	for _, name := range []string{"allowed_no_policy", "allowed", "refused"} {
		q := answers()[name]
		b.Run("encoder/"+name, func(b *testing.B) {
			b.ReportAllocs()
			e, dst := encoders(q.answer)[0], []byte(nil)
			for b.Loop() {
				dst, _ = e.Append(dst[:0], q.answer, q.caller)
			}
		})
		b.Run("protobuf/"+name, func(b *testing.B) {
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				var err error
				if dst, err = (proto.MarshalOptions{}).MarshalAppend(dst[:0], respond(q.answer, q.caller)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
