package world

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirproxy/weir/test/load"
)

// Policy renders a policy on the tests' target for clients that a header names.
func Policy(limits ...string) string {
	return fmt.Sprintf(`apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: orders}]
  client: [{source: Header, name: x-api-key}]
  limits:
%s`, strings.Join(limits, ""))
}

// EachClient is a limit a second for each client, in the mode given.
func EachClient(perSecond int, extra string) string {
	return fmt.Sprintf("  - {name: each-client, counters: [Client], rates: [{limit: %d, window: 1s}]%s}\n", perSecond, extra)
}

// Everything only counts: a limit that nothing reaches, so that Redis keeps the total.
const Everything = "  - {name: everything, rates: [{limit: 100000000, window: 1h}]}\n"

// Uneven is one client's requests, spread 60/30/10 over the first three pods.
func Uneven(client string, perSecond float64) []load.Source {
	var out []load.Source
	for i, part := range []float64{0.6, 0.3, 0.1} {
		out = append(out, load.Source{
			Name: client, Rate: load.Constant(perSecond * part), Poisson: true, Pods: []string{fmt.Sprintf("orders-%d", i)},
			Request: load.Request{Path: "/orders", Header: map[string]string{"x-api-key": client}},
		})
	}
	return out
}

// Steady leaves out the first two seconds, in which the fleet meets the load.
const Steady = 2 * time.Second

// After returns the times, ms, from the given moment on.
func After(times []int64, from time.Duration) []int64 {
	var out []int64
	for _, t := range times {
		if t >= from.Milliseconds() {
			out = append(out, t)
		}
	}
	return out
}
