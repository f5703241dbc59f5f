package wire

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/extauthz/content"
	"github.com/weirproxy/weir/sidecar/ledger"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// threeLimits: one counter for all, one a client by a secret header, one a client and endpoint.
const threeLimits = `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{kind: Deployment, name: orders}]
  client: [{source: Principal}, {source: Header, name: x-api-key}]
  limits:
  - {name: whole-service, rates: [{limit: 1000000000, window: 1s}]}
  - {name: each-client, counters: [Client], rates: [{limit: 100000000, window: 1s}]}
  - name: each-order
    when: {methods: [GET, POST], paths: [{type: Exact, value: /orders}, {type: Template, value: "/orders/{id}"}]}
    counters: [Client, Endpoint]
    rates: [{limit: 100000000, window: 1m}]
`

const pathTarget = "shop/Deployment/orders"

// path is all that a check goes through behind the server, by the machine's clock.
type path struct {
	checker *check.Checker
	ledger  *ledger.Ledger
	matcher *match.Matcher
	keys    wirev1.Keys
	wanted  *Wanted
	encoder *Encoder
	target  check.Target
	began   time.Time
	headers uint64
	rnd     quota.Rand

	scratch Scratch
	req     match.Request
	answer  check.Answer
	reply   []byte
}

func newPath(tb testing.TB, spec string) *path {
	tb.Helper()
	p := &path{began: time.Now(), target: check.Target{Name: pathTarget, Fresh: new(quota.Fresh), Fleet: new(quota.Fleet)}}
	p.target.Fleet.Set(10)
	var err error
	if p.keys, err = wirev1.NewKeys(bytes.Repeat([]byte{7}, wirev1.KeySize)); err != nil {
		tb.Fatal(err)
	}
	set := policy.NewSet([]*policy.Policy{compiled(tb, spec, p.keys)})
	if p.matcher, err = match.New(set, p.keys, match.Pod{Namespace: "shop", OwnerKind: "Deployment", OwnerName: "orders"}); err != nil {
		tb.Fatal(err)
	}
	p.ledger = ledger.New(ledger.Config{Prepare: func(s *ledger.Slot) {
		s.Counter = new(quota.Counter)
		s.Counter.Init(s.Cell, s.Rule, s.Fresh, s.Fleet, s.Made, p.now())
	}})
	m := metrics.New(prometheus.NewRegistry(), metrics.Sources{})
	p.checker = check.New(check.Config{
		Ledger: p.ledger, Metrics: m, Clock: p.now, MaxInFlight: 100, Known: func(wirev1.ID) bool { return false },
	})
	snap := &check.Snapshot{
		Matcher: p.matcher, Targets: map[string]*check.Target{pathTarget: &p.target}, Policies: set.Policies(),
		Limits: map[*policy.Limit]*metrics.LimitCounters{}, Names: map[*policy.Limit]string{},
	}
	for _, pol := range set.Policies() {
		for _, l := range pol.Limits {
			snap.Limits[l], snap.Names[l] = m.Limit(pol.Name, l.Name), check.LimitName(l)
		}
	}
	reads := snap.Reads()
	p.wanted, p.encoder = NewWanted(reads.Headers, reads.Claims), NewEncoder(snap.Policies)
	p.checker.Install(snap)
	p.hear()
	return p
}

func compiled(tb testing.TB, spec string, keys wirev1.Keys) *policy.Policy {
	tb.Helper()
	docs, err := policy.Parse("test", []byte(spec))
	if err != nil {
		tb.Fatal(err)
	}
	key, msg, err := policy.Encode(policy.OriginFile, docs[0], keys, nil)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := policy.Decode(key, 1, msg)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func (p *path) now() quota.Time { return quota.Time(time.Hour + time.Since(p.began)) }

// hear is the owner's next header.
func (p *path) hear() quota.Header {
	p.headers++
	h := quota.Header{
		Epoch: 1, Sequence: p.headers, Watermark: -1, OwnerTime: quota.Millis(1_795_000_000_000 + p.headers),
		Received: p.now(), Flush: 50 * time.Millisecond, Tick: 25 * time.Millisecond,
	}
	p.target.Fresh.Observe(h)
	return h
}

// flush is what the control goroutine does between checks: counters are reported, and some decided on anew.
func (p *path) flush(decide bool) {
	h := p.hear()
	p.ledger.TakeMade(func(*ledger.Slot) {})
	p.ledger.TakeDirty(func(s *ledger.Slot) {
		s.Counter.Flush(p.now(), 50*time.Millisecond, true)
		s.Counter.Acknowledge(int64(p.headers), h.OwnerTime, p.now())
		if decide {
			s.Counter.Apply(h, decision(s.Rule), p.now(), &p.rnd)
		}
	})
}

// decision is a record of a counter of which nearly all is left.
func decision(r *quota.Rule) quota.Record {
	m := r.Amount()
	return quota.Record{
		Amount: m, Rate: m, Remaining: m * 0.9, Content: m * 0.1, Demand: 1, MeanCost: 1,
		ShareSum: 1, Epsilon: 1, Level: math.Inf(1), Grant: m, // all of it is this pod's
	}
}

func (p *path) scan(tb testing.TB, b []byte) {
	if err := Scan(b, p.wanted, &p.req, &p.scratch); err != nil {
		tb.Fatal(err)
	}
}

func (p *path) decide() { p.checker.CheckBy(p.checker.Snapshot(), &p.req, &p.answer) }

func (p *path) encode(tb testing.TB) {
	var ok bool
	var from content.Caller
	if !p.answer.Allow() {
		from = content.CallerOf(&p.req)
	}
	if p.reply, ok = p.encoder.Append(p.reply[:0], &p.answer, from); !ok {
		tb.Fatalf("no answer: %v", p.answer.Outcome)
	}
}

// call is one check as the server makes it.
func (p *path) call(tb testing.TB, b []byte) {
	p.scan(tb, b)
	p.decide()
	p.encode(tb)
}

// order is a check with 16 headers as Envoy 1.40 sends it for a request over HTTP/1.1, of client 0.
func order(tb testing.TB) *ordered {
	tb.Helper()
	socket := func(a string, port uint32) *corev3.Address {
		return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: a, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
		}}}
	}
	headers := map[string]string{
		":authority": "orders.shop.svc.cluster.local:8080", ":method": "GET", ":path": "/orders/31415926?expand=items",
		":scheme": "http", "accept": "application/json, text/plain, */*", "accept-encoding": "gzip, deflate, br",
		"accept-language": "en-GB,en;q=0.9", "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
		"x-api-key": clientKey + "00000000", "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https",
		"x-request-id": "9a3c1b52-7d0e-4f6a-8b21-0c9d8e7f6a5b", "x-envoy-expected-rq-timeout-ms": "15000",
		"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "cache-control": "no-cache",
		"cookie": "session=0123456789abcdef0123456789abcdef; theme=dark",
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(&authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source:      &authv3.AttributeContext_Peer{Address: socket("10.42.3.17", 51234)},
		Destination: &authv3.AttributeContext_Peer{Address: socket("10.42.1.5", 8080)},
		Request: &authv3.AttributeContext_Request{
			Time: &timestamppb.Timestamp{Seconds: 1_795_000_000, Nanos: 123_456_000},
			Http: &authv3.AttributeContext_HttpRequest{
				Id: "1234567890123456789", Method: "GET", Headers: headers, Path: headers[":path"],
				Host: headers[":authority"], Scheme: "http", Protocol: "HTTP/1.1", Size: -1,
			},
		},
		MetadataContext: &corev3.Metadata{}, RouteMetadataContext: &corev3.Metadata{},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return &ordered{b: b, at: bytes.Index(b, []byte(clientKey)) + len(clientKey)}
}

const clientKey = "sk-live-0123456789abcdef-"

// ordered is the bytes of a check whose client can be changed.
type ordered struct {
	b  []byte
	at int
}

// of makes it client n's.
func (o *ordered) of(n int) []byte {
	var digits [8]byte
	copy(digits[:], "00000000")
	text := strconv.AppendInt(make([]byte, 0, 8), int64(n), 10)
	copy(digits[8-len(text):], text)
	copy(o.b[o.at:], digits[:])
	return o.b
}

// In steady state no step allocates, whichever client calls, with or without a decision on its counters.
func TestAllocationsOfEachStep(t *testing.T) {
	if raceDetector {
		t.Skip("allocations are counted without the race detector")
	}
	const clients = 100
	p, o := newPath(t, threeLimits), order(t)
	for _, decided := range []bool{false, true} {
		for n := range clients {
			p.call(t, o.of(n))
		}
		if p.answer.Outcome != metrics.Allowed || p.answer.Limit == nil {
			t.Fatalf("%+v", p.answer)
		}
		if slots, _ := p.ledger.Size(); slots != 2*clients+1 {
			t.Fatalf("%d counters, want two a client and one for all", slots)
		}
		p.flush(decided)
		n := 0
		next := func() []byte { n = (n + 1) % clients; return o.of(n) }
		var found match.Result
		p.matcher.Match(&p.req, &found)
		identity := found.Hits[2].Identity
		for name, step := range map[string]func(){
			"scan":   func() { p.scan(t, next()) },
			"match":  func() { p.matcher.Match(&p.req, &found) },
			"key":    func() { p.keys.ID(identity) },
			"decide": p.decide,
			"encode": func() { p.encode(t) },
			"whole":  func() { p.call(t, next()) },
		} {
			if allocs := testing.AllocsPerRun(500, step); allocs != 0 {
				t.Errorf("%s (decisions: %v): %v allocations", name, decided, allocs)
			}
		}
	}
}

func TestARefusalAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("allocations are counted without the race detector")
	}
	p, b := newPath(t, strings.Replace(threeLimits, "limit: 100000000, window: 1m", "limit: 50, window: 1m", 1)), order(t).of(1)
	for range 100 {
		p.call(t, b)
	}
	if p.answer.Outcome != metrics.Refused || p.answer.Limit.Name != "each-order" {
		t.Fatalf("%+v", p.answer)
	}
	if n := testing.AllocsPerRun(200, func() { p.call(t, b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkPath is the whole path and its steps. What the control goroutine does meanwhile is not measured.
func BenchmarkPath(b *testing.B) {
	for _, clients := range []int{1, 10_000} {
		for _, step := range []string{"scan", "match", "key", "decide", "encode", "whole"} {
			b.Run(fmt.Sprintf("%s/clients=%d", step, clients), func(b *testing.B) { benchmarkStep(b, step, clients) })
		}
	}
}

func benchmarkStep(b *testing.B, step string, clients int) {
	p, o := newPath(b, threeLimits), order(b)
	for n := range clients {
		p.call(b, o.of(n))
	}
	p.flush(true)
	var found match.Result
	p.matcher.Match(&p.req, &found)
	const fixed = 61 // about what a policy fixes of an identity
	each, endpoint := found.Hits[1].Identity, found.Hits[2].Identity
	ofEach, ofEndpoint := p.keys.Prefix(each[:fixed]), p.keys.Prefix(endpoint[:fixed])
	run := map[string]func(bytes []byte){
		"scan":   func(bytes []byte) { p.scan(b, bytes) },
		"match":  func([]byte) { p.matcher.Match(&p.req, &found) },
		"key":    func([]byte) { ofEach.ID(each[fixed:]); ofEndpoint.ID(endpoint[fixed:]) },
		"decide": func([]byte) { p.decide() },
		"encode": func([]byte) { p.encode(b) },
		"whole":  func(bytes []byte) { p.call(b, bytes) },
	}[step]
	b.ReportAllocs()
	i, idle, began := 0, time.Duration(0), cpuTime(b)
	for b.Loop() {
		if i++; i%65536 == 0 { // about what a flush has between it and the last
			b.StopTimer()
			from := cpuTime(b)
			p.flush(false)
			idle += cpuTime(b) - from
			b.StartTimer()
		}
		run(o.of(i * 7919 % clients))
	}
	if p.answer.Outcome != metrics.Allowed || p.answer.Limit == nil {
		b.Fatalf("%+v", p.answer)
	}
	b.ReportMetric(float64((cpuTime(b)-began-idle).Nanoseconds())/float64(i), "cpu-ns/op")
}
