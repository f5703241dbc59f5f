package system

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/world"
)

// The limits a second of the tests with faults between the parts.
const (
	eachClientLimit = 120
	writesLimit     = 30
)

// toxicsPolicy has a window that refuses, a bucket that refuses a part of what the window passes, and
// two limits that keep totals for an hour. Clients are told apart in Redis by their names.
var toxicsPolicy = strings.Replace(world.Policy(
	world.EachClient(eachClientLimit, ""),
	fmt.Sprintf("  - {name: writes, when: {methods: [POST]}, counters: [Client], rates: [{limit: %d, window: 1s, algorithm: TokenBucket, burst: 45}]}\n", writesLimit),
	"  - {name: hourly, counters: [Client], rates: [{limit: 10000000, window: 1h}]}\n",
	world.Everything,
), "name: x-api-key", "name: x-api-key, reveal: true", 1)

// toxicsSources are three clients on three pods: acme at twice its limit, bravo at a third of it, carol
// below it but for her writes.
func toxicsSources() []load.Source {
	carol := world.Uneven("carol", 2*writesLimit)
	for i := range carol {
		carol[i].Request.Method = "POST"
	}
	bravo := load.Source{
		Name: "bravo", Rate: load.Constant(eachClientLimit / 3), Poisson: true,
		Request: load.Request{Path: "/orders", Header: map[string]string{"x-api-key": "bravo"}},
	}
	return append(append(world.Uneven("acme", 2*eachClientLimit), carol...), bravo)
}

// everything is the counter of all that passes.
var everything = world.CounterName{Limit: "everything"}

// account holds what clients were admitted against what weir counted. A counter's total is to be just
// that, at its owner and in Redis.
type account struct {
	w        *world.World
	admitted map[world.CounterName]int // since the world began
}

func newAccount(w *world.World) *account {
	return &account{w: w, admitted: map[world.CounterName]int{}}
}

// enter adds a run: each request is charged to every limit that applies to it, a refused one to none.
func (a *account) enter(res load.Result) {
	for _, client := range res.Sources() {
		n := res.Of(client).Admitted
		a.admitted[world.CounterName{Limit: "each-client", Client: client}] += n
		a.admitted[world.CounterName{Limit: "hourly", Client: client}] += n
		a.admitted[everything] += n
		if client == "carol" {
			a.admitted[world.CounterName{Limit: "writes", Client: client}] += n
		}
	}
}

// leeway is what a killed pod excuses: the most units lost, and the requests that its Envoy let through
// uncounted, of which client is not known.
type leeway struct{ lost, uncounted int }

// compare waits until all is counted, prints the account and fails on a unit too many or too few.
func (a *account) compare(t *testing.T, l leeway) {
	t.Helper()
	a.w.Settle()
	owner, err := a.w.OwnerTotals()
	a.w.Must(err)
	stored, err := a.w.StoredTotals("each-client", "writes", "hourly", "everything")
	a.w.Must(err)
	for n := range owner {
		a.admitted[n] += 0 // also one that nobody was admitted to
	}
	a.admitted[everything] -= l.uncounted
	var b strings.Builder
	fmt.Fprintf(&b, "| %-11s | %-6s | admitted | owner | Redis | missing | extra |\n", "limit", "client")
	for _, n := range slices.SortedFunc(maps.Keys(a.admitted), byName) {
		if _, met := owner[n]; !met { // since a handover: its owner would load what Redis has
			owner[n] = stored[n]
		}
		want, o, s := a.admitted[n], int(owner[n]), int(stored[n]) //nolint:gosec // small
		missing, extra := max(0, want-min(o, s)), max(0, max(o, s)-want)
		fmt.Fprintf(&b, "| %-11s | %-6s | %8d | %5d | %5d | %7d | %5d |\n", n.Limit, n.Client, want, o, s, missing, extra)
		may := l.lost
		if n != everything {
			may += l.uncounted
		}
		if extra > 0 || missing > may || o != s {
			t.Errorf("%v: clients count %d, the owner has %d, Redis %d; at most %d may be missing", n, want, o, s, may)
		}
	}
	t.Logf("totals (at most %d lost, %d uncounted):\n%s", l.lost, l.uncounted, b.String())
}

func byName(a, b world.CounterName) int {
	return cmp.Or(cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Client, b.Client))
}
