package wire

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/weirproxy/weir/sidecar/match"
)

// whole is a check that says all that Scan reads, with n headers.
func whole(tb testing.TB, n int) []byte {
	tb.Helper()
	payload, err := structpb.NewStruct(map[string]any{
		"b_payload": map[string]any{"sub": "bob", "n": 12345678901.0, "ok": true, "list": []any{"x"}},
		"a_payload": map[string]any{"sub": "alice", "iss": "https://id.example", "n": []any{}},
		"text":      "no payload",
	})
	if err != nil {
		tb.Fatal(err)
	}
	headers := map[string]string{"x-api-key": "a,b", "origin": "https://shop.example", "content-type": "application/json"}
	for i := len(headers); i < n; i++ {
		headers[fmt.Sprintf("x-forwarded-header-%d", i)] = "some value of a usual length, 37 bytes"
	}
	socket := func(a string) *corev3.Address {
		return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: a}}}
	}
	b, err := proto.Marshal(&authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source:      &authv3.AttributeContext_Peer{Principal: "spiffe://cluster/ns/shop/sa/web", Address: socket("2001:db8::7")},
		Destination: &authv3.AttributeContext_Peer{Principal: "spiffe://cluster/ns/shop/sa/orders", Address: socket("192.0.2.1")},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: "POST", Path: "/orders/7?x=1", Host: "shop.example:8443", Headers: headers, Protocol: "HTTP/2",
		}},
		ContextExtensions: map[string]string{"weir.target": "shop/Service/orders", "other": "x"},
		MetadataContext:   &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{jwtFilter: payload, "other": payload}},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// raw is a check with headers as encode_raw_headers gives them.
func raw(tb testing.TB) []byte {
	tb.Helper()
	b, err := proto.Marshal(&authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{HeaderMap: &corev3.HeaderMap{
			Headers: []*corev3.HeaderValue{
				{Key: "x-api-key", RawValue: []byte("\xff\x00")}, {Key: "x-cost", Value: "2"}, {Key: "x-api-key", RawValue: []byte("b")},
			},
		}}},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// same holds Scan to the generated decoder on any bytes: refused by both or by none, and the same request,
// whether all headers are wanted or some.
func same(t fataler, b []byte) {
	t.Helper()
	var decoded authv3.CheckRequest
	var want, got match.Request
	var s Scratch
	broken := proto.Unmarshal(b, &decoded)
	err := Scan(b, nil, &got, &s)
	if (broken != nil) != errors.Is(err, ErrInvalid) {
		t.Fatalf("%x: %v, the generated decoder says %v", b, err, broken)
	}
	isHTTP := broken == nil && convert(&decoded, &want)
	if isHTTP != (err == nil) || broken == nil && err != nil && !errors.Is(err, ErrNotHTTP) {
		t.Fatalf("%x: %v, about HTTP: %v", b, err, isHTTP)
	}
	if err != nil {
		return
	}
	if !maps.Equal(got.Headers.Joined, want.Headers.Joined) || !slices.Equal(got.Headers.Raw, want.Headers.Raw) {
		t.Fatalf("%x: headers %q, want %q", b, got.Headers, want.Headers)
	}
	sameButHeaders(t, b, &decoded, &got, &want)

	names := namesOf(&want.Headers)
	wanted := NewWanted(names[:len(names)/2], true)
	if err := Scan(b, wanted, &got, &s); err != nil {
		t.Fatalf("%x: %v once headers are chosen", b, err)
	}
	sameButHeaders(t, b, &decoded, &got, &want)
	for _, name := range append(names, "origin") {
		values := valuesOf(&want.Headers, name)
		if !slices.Contains(wanted.names, name) {
			values = nil
		}
		if g := valuesOf(&got.Headers, name); !slices.Equal(g, values) {
			t.Fatalf("%x: header %q is %q, want %q", b, name, g, values)
		}
	}
}

func sameButHeaders(t fataler, b []byte, decoded *authv3.CheckRequest, got, want *match.Request) {
	t.Helper()
	if got.Method != want.Method || got.Path != want.Path || got.Host != want.Host || got.Peer != want.Peer ||
		got.Principal != want.Principal || got.Target != want.Target || (got.Claims == nil) != (want.Claims == nil) {
		t.Fatalf("%x:\n%+v, want\n%+v", b, got, want)
	}
	if want.Claims == nil {
		return
	}
	names := map[string]bool{"none": true}
	for _, v := range payloadsOf(decoded).GetFields() {
		for name := range v.GetStructValue().GetFields() {
			names[name] = true
		}
	}
	for name := range names {
		w, wok := want.Claims.Claim(name)
		if g, ok := got.Claims.Claim(name); g != w || ok != wok {
			t.Fatalf("%x: claim %q is %q (%v), want %q (%v)", b, name, g, ok, w, wok)
		}
	}
}

func namesOf(h *match.Headers) []string {
	names := map[string]bool{}
	for name := range h.Joined {
		names[name] = true
	}
	for _, r := range h.Raw {
		names[r.Name] = true
	}
	var lower []string // policies' names are
	for name := range names {
		if NewWanted([]string{name}, false).index(name) >= 0 {
			lower = append(lower, name)
		}
	}
	return slices.Sorted(slices.Values(lower))
}

// valuesOf are a header's values as match sees them.
func valuesOf(h *match.Headers, name string) (values []string) {
	if v, ok := h.Joined[name]; ok {
		return []string{v}
	}
	for _, r := range h.Raw {
		if r.Name == name {
			values = append(values, r.Value)
		}
	}
	return values
}

// texts are what strings are drawn from: few, so that names repeat.
var texts = []string{"", "a", "b", "sub", "x-api-key", "weir.target", jwtFilter, "192.0.2.7", "fe80::1%eth0", "\xff"}

// bytesOf draws bytes of a message by its fields: in any order, repeated, in pieces, of other wire types,
// unknown ones between.
func bytesOf(t *rapid.T, m message, depth int) (b []byte) {
	var nums []protowire.Number
	for num, f := range schema[m] {
		if f != (field{}) {
			nums = append(nums, protowire.Number(num))
		}
	}
	nums = append(nums, 1, 2, 15) // kinds of values that are numbers; unknown fields
	most := 4
	if depth > 12 {
		most = 0
	}
	for range rapid.IntRange(0, most).Draw(t, "fields") {
		num := rapid.SampledFrom(nums).Draw(t, "number")
		typ := protowire.BytesType
		if rapid.IntRange(0, 5).Draw(t, "other type") == 0 {
			typ = rapid.SampledFrom([]protowire.Type{
				protowire.VarintType, protowire.Fixed64Type, protowire.Fixed32Type, protowire.StartGroupType,
			}).Draw(t, "type")
		}
		b = appendField(t, protowire.AppendTag(b, num, typ), num, typ, m, depth)
	}
	return b
}

func appendField(t *rapid.T, b []byte, num protowire.Number, typ protowire.Type, m message, depth int) []byte {
	switch typ {
	case protowire.VarintType:
		return protowire.AppendVarint(b, rapid.Uint64().Draw(t, "varint"))
	case protowire.Fixed64Type:
		return protowire.AppendFixed64(b, rapid.Uint64().Draw(t, "fixed64"))
	case protowire.Fixed32Type:
		return protowire.AppendFixed32(b, 7)
	case protowire.StartGroupType:
		return protowire.AppendGroup(b, num, bytesOf(t, timestamp, depth+1))
	}
	f := field{}
	if num <= maxField {
		f = schema[m][num]
	}
	if f.kind == nested || f.kind == mapped {
		return protowire.AppendBytes(b, bytesOf(t, f.into, depth+1))
	}
	most := len(texts) - 2
	if rapid.IntRange(0, 30).Draw(t, "broken") == 0 {
		most++
	}
	return protowire.AppendString(b, texts[rapid.IntRange(0, most).Draw(t, "text")])
}

// check draws a CheckRequest with something to find in it.
func checkOf(t *rapid.T) []byte {
	b := bytesOf(t, checkRequest, 0)
	for range rapid.IntRange(1, 4).Draw(t, "pieces") {
		var part []byte
		switch rapid.IntRange(0, 4).Draw(t, "piece") {
		case 0:
			part = piece(4, piece(2, bytesOf(t, httpRequest, 3)))
		case 1:
			part = piece(1, bytesOf(t, source, 2))
		case 2:
			part = piece(10, bytesOf(t, extensionEntry, 2))
		default:
			payload := slices.Concat(piece(1, []byte("p")), piece(2, piece(5, bytesOf(t, structValue, 5))))
			if rapid.Bool().Draw(t, "any payloads") {
				payload = bytesOf(t, valueEntry, 5)
			}
			part = piece(11, piece(1, slices.Concat(piece(1, []byte(jwtFilter)), piece(2, piece(1, payload)))))
		}
		b = append(b, piece(1, part)...)
	}
	if rapid.IntRange(0, 2).Draw(t, "about http") > 0 {
		b = append(b, piece(1, piece(4, piece(2, nil)))...)
	}
	return b
}

// piece is a length-delimited field.
func piece(num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), v)
}

func TestScanReadsWhatTheGeneratedDecoderDoes(t *testing.T) {
	same(t, whole(t, 10))
	same(t, raw(t))
	same(t, nil)
	rapid.Check(t, func(t *rapid.T) { same(t, checkOf(t)) })
}

// What a message says in pieces, twice, or in another order counts as protobuf has it.
func TestPiecesAddUpAsProtobufHasIt(t *testing.T) {
	word := func(num protowire.Number, s string) []byte { return piece(num, []byte(s)) }
	entry := func(key string, value []byte) []byte { return slices.Concat(word(1, key), piece(2, value)) }
	number := protowire.AppendFixed64(protowire.AppendTag(nil, 2, protowire.Fixed64Type), 0)
	sub := func(v string) []byte { return piece(5, piece(1, entry("sub", word(3, v)))) } // a value, of claims
	claim := func(payloads ...[]byte) []byte {
		return within(entry(jwtFilter, slices.Concat(payloads...)), 1, 11, 1)
	}
	payload := func(name string, values ...[]byte) []byte {
		return piece(1, entry(name, slices.Concat(values...)))
	}
	ip := word(2, "192.0.2.7")
	for name, c := range map[string]struct {
		check []byte
		want  string
	}{
		"a socket's address":       {within(piece(1, ip), 1, 1, 1), "192.0.2.7"},
		"a pipe drops it":          {within(slices.Concat(piece(1, ip), piece(2, nil)), 1, 1, 1), "invalid IP"},
		"a pipe before":            {within(slices.Concat(piece(2, nil), piece(1, ip)), 1, 1, 1), "192.0.2.7"},
		"a number is no pipe":      {within(slices.Concat(piece(1, ip), []byte{2 << 3, 1}), 1, 1, 1), "192.0.2.7"},
		"another piece keeps it":   {within(slices.Concat(piece(1, ip), piece(1, nil)), 1, 1, 1), "192.0.2.7"},
		"the last address":         {within(slices.Concat(piece(1, word(2, "192.0.2.8")), piece(1, ip)), 1, 1, 1), "192.0.2.7"},
		"an entry's value first":   {within(slices.Concat(word(2, "v"), word(1, "weir.target")), 10, 1), "target v"},
		"the last entry of a key":  {within(slices.Concat(piece(10, entry("weir.target", []byte("u"))), piece(10, entry("weir.target", nil))), 1), "target "},
		"a claim":                  {claim(payload("p", sub("a"))), "claim a"},
		"the last payload":         {claim(payload("p", sub("a")), payload("p", sub("b"))), "claim b"},
		"the last, if it has none": {claim(payload("p", sub("a")), payload("p", number)), "no claim"},
		"payloads by name":         {claim(payload("q", sub("a")), payload("p", sub("b"))), "claim b"},
		"a payload in pieces":      {claim(payload("p", sub("a"), piece(5, nil))), "claim a"},
		"a number drops claims":    {claim(payload("p", sub("a"), number, piece(5, nil))), "no claim"},
		"the last metadata":        {slices.Concat(claim(payload("p", sub("a"))), claim()), "no claim"},
		"a field's number too big": {protowire.AppendVarint(protowire.AppendTag(nil, protowire.MaxValidNumber+1, protowire.VarintType), 1), "refused"},
		"the end of no group":      {[]byte{1<<3 | 4}, "refused"},
	} {
		b := slices.Concat(within(nil, 2, 4, 1), c.check)
		same(t, b)
		var req match.Request
		var s Scratch
		got := "refused"
		if Scan(b, nil, &req, &s) == nil {
			got = req.Peer.String() + " target " + req.Target + " no claim"
			if req.Claims != nil {
				if v, ok := req.Claims.Claim("sub"); ok {
					got = "claim " + v
				}
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Whatever is changed, cut off or put in, both refuse it, or both read the same.
func TestScanRefusesWhatTheGeneratedDecoderRefuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := checkOf(t)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "change") {
			case 0:
				b[at] = rapid.Byte().Draw(t, "byte")
			case 1:
				b = b[:max(at, 1)]
			default:
				b = slices.Insert(b, at, rapid.SliceOfN(rapid.Byte(), 1, 4).Draw(t, "bytes")...)
			}
		}
		same(t, b)
	})
}

// Messages within messages end where the generated decoder's do, at 10,000: for lists, for maps, and for a
// map's number that is no map.
func TestNestingIsBoundedAsTheGeneratedDecoderBoundsIt(t *testing.T) {
	number := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
	for name, wraps := range map[string][]protowire.Number{ // from the inside, up to a value
		"lists": {1, 6}, "structs": {2, 1, 5}, "no map": {5, 2, 1},
	} {
		accepted, refused := 0, 0
		inner := number
		for i := range 10_010 {
			num := wraps[i%len(wraps)]
			if inner = piece(num, inner); i < 9_970 || num < 5 {
				continue
			}
			for _, lists := range [][]protowire.Number{nil, {1, 6}, {1, 6, 1, 6}} { // two levels each
				b := within(within(inner, lists...), 2, 1, 2, 1, 11, 1)
				same(short{t}, b)
				if proto.Unmarshal(b, &authv3.CheckRequest{}) != nil {
					refused++
				} else {
					accepted++
				}
			}
		}
		if accepted == 0 || refused == 0 {
			t.Errorf("%s: accepted %d times, refused %d: the bound was not met", name, accepted, refused)
		}
	}
}

// within wraps a message in others, by the numbers of their fields.
func within(b []byte, nums ...protowire.Number) []byte {
	for _, num := range nums {
		b = piece(num, b)
	}
	return b
}

// short fails without the bytes.
type short struct{ t *testing.T }

func (s short) Helper()                        { s.t.Helper() }
func (s short) Fatalf(format string, a ...any) { s.t.Helper(); s.t.Fatal(a[1:]...) }

func FuzzScanAgainstProtobuf(f *testing.F) {
	f.Add(whole(f, 10))
	f.Add(raw(f))
	drawn := rapid.Custom(checkOf)
	for seed := range 40 {
		f.Add(drawn.Example(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) { same(t, b) })
}

func TestOneScratchServesManyChecks(t *testing.T) {
	var s Scratch
	var req match.Request
	wanted := NewWanted([]string{"x-api-key"}, true)
	for _, b := range [][]byte{whole(t, 10), raw(t)} {
		for _, w := range []*Wanted{nil, wanted, nil} {
			if err := Scan(b, w, &req, &s); err != nil {
				t.Fatal(err)
			}
		}
	}
	if req.Principal != "" || req.Claims != nil || req.Target != "" || len(req.Headers.Joined) > 0 || len(req.Headers.Raw) != 3 {
		t.Errorf("%+v: of an earlier check", req)
	}
	for _, name := range []string{"a", "b"} {
		b := within(slices.Concat(piece(1, []byte(name)), piece(2, []byte("v"))), 3, 2, 4, 1)
		if err := Scan(b, nil, &req, &s); err != nil || !maps.Equal(req.Headers.Joined, map[string]string{name: "v"}) {
			t.Errorf("%v, headers %q, want %s alone", err, req.Headers.Joined, name)
		}
	}
	if err := Scan([]byte{0xff}, nil, &req, &s); err == nil || len(req.Headers.Raw) > 0 {
		t.Errorf("%v, %+v: an error leaves nothing", err, req)
	}
}

// A check with very many headers must not hold its memory for good, nor take time that grows with the square
// of their number.
func TestMemoryOfUnusualChecksIsLetGo(t *testing.T) {
	var entries []byte
	for range 100_000 {
		entries = append(entries, piece(13, piece(1, piece(1, []byte("origin"))))...)
		entries = append(entries, piece(3, piece(1, []byte("origin")))...)
	}
	b := piece(1, piece(4, piece(2, entries)))
	var s Scratch
	var req match.Request
	for _, w := range []*Wanted{nil, NewWanted(nil, false)} {
		if err := Scan(b, w, &req, &s); err != nil {
			t.Fatal(err)
		}
	}
	if len(req.Headers.Raw) != 1 {
		t.Errorf("%d headers, want the joined one", len(req.Headers.Raw))
	}
	s.Reset()
	if cap(s.raw) > maxKeptHeaders || s.claims.entry != nil || s.req.Method != "" {
		t.Errorf("%d headers are kept", cap(s.raw))
	}
}

func TestScanAllocatesNothing(t *testing.T) {
	for _, n := range []int{10, 100} {
		b := whole(t, n)
		for name, w := range map[string]*Wanted{"some": NewWanted([]string{"x-api-key"}, true), "all": nil} {
			var s Scratch
			var req match.Request
			allocs := testing.AllocsPerRun(200, func() {
				if err := Scan(b, w, &req, &s); err != nil {
					t.Fatal(err)
				}
				if v, _ := req.Claims.Claim("n"); v != "12345678901" {
					t.Fatal(v)
				}
			})
			if allocs != 0 {
				t.Errorf("%d headers, %s wanted: %v allocations", n, name, allocs)
			}
		}
	}
}

func BenchmarkScan(b *testing.B) {
	w := NewWanted([]string{"x-api-key"}, true)
	for _, n := range []int{10, 30, 100} {
		in := whole(b, n)
		b.Run(fmt.Sprintf("scan/headers=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var s Scratch
			var req match.Request
			for b.Loop() {
				if err := Scan(in, w, &req, &s); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("protobuf/headers=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var req match.Request
			for b.Loop() {
				var c authv3.CheckRequest
				if err := proto.Unmarshal(in, &c); err != nil || !convert(&c, &req) {
					b.Fatal(err)
				}
			}
		})
	}
}
