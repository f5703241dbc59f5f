package policy

import (
	"testing"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

const ordinary = `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: orders}]
  client: [{source: Principal}, {source: Header, name: x-api-key}]
  limits:
  - {name: each-client, counters: [Client], rates: [{limit: 100, window: 1s}, {limit: 2000, window: 1m}]}
  - {name: writes, when: {methods: [POST, PUT], paths: [{type: Template, value: "/orders/{id}"}]}, counters: [Client, Endpoint],
     rates: [{limit: 20, window: 1s, algorithm: TokenBucket, burst: 40}]}
  - {name: whole, rates: [{limit: 5000, window: 1s}], overcommit: Learned}
`

// BenchmarkDecode is what one record of weir.policies costs a program that takes it up.
func BenchmarkDecode(b *testing.B) {
	docs, err := Parse("b", []byte(ordinary))
	if err != nil {
		b.Fatal(err)
	}
	key, msg, err := Encode(OriginFile, docs[0], wirev1.Keys{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(msg.GetDocument())))
	for b.Loop() {
		if _, err := Decode(key, 1, msg); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReissued is what such a record costs that is published again unchanged.
func BenchmarkReissued(b *testing.B) {
	p := publish(b, OriginFile, 1, ordinary)
	b.ReportAllocs()
	version := int64(1)
	for b.Loop() {
		version++
		p.Reissued(version)
	}
}
