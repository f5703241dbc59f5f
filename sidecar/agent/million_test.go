//go:build !race

package agent

import (
	"strconv"
	"testing"

	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/ledger"
	"github.com/weirproxy/weir/sidecar/match"
)

// A million clients that each ask once: no more counters than the bound, each of the rest counted by the limit's
// overflow counter, and one that was there keeps the count of what it used and of what it has left.
func TestAMillionClientsLeaveTheOthersTheirLimits(t *testing.T) {
	const bound, clients = 5_000, 1_000_000
	cells := 0
	d, _ := begun(t, `[{name: each, counters: [Client], rates: [{limit: 100, window: 1h}]}]`, func(c *Config) {
		c.MaxCounters = bound
		c.Cells = func(n int) []quota.Cell { cells += n; return ledger.NewCells(n) }
	})
	if got := d.passes("modest", 60); got != 60 {
		t.Fatalf("%d of 60 pass", got)
	}
	flood := request("")
	overflowed := 0
	for i := range clients {
		flood.Headers = match.Headers{Joined: map[string]string{"x-client": "flood-" + strconv.Itoa(i)}}
		if !d.asked(flood) {
			overflowed++
		}
		if i%10_000 == 0 {
			d.takeMade(d.now())
			d.ledger.TakeDirty(d.builder.Mark)
		}
	}
	slots, _ := d.ledger.Size()
	if slots > bound+1 || cells > bound+1+256 {
		t.Errorf("%d slots in %d cells; the bound is %d", slots, cells, bound)
	}
	if most := clients - bound - 100; overflowed < most {
		t.Errorf("%d clients beyond the bound were refused, want %d: they share one counter of 100", overflowed, most)
	}
	if got := d.passes("modest", 60); got != 40 {
		t.Errorf("after the flood %d of 60 pass, want the 40 that are left", got)
	}
}

// asked says whether a request passes.
func (d *desk) asked(r *match.Request) bool {
	d.t.Helper()
	var a check.Answer
	d.Checker().Check(r, &a)
	if a.Failed() {
		d.t.Fatalf("outcome %v", a.Outcome)
	}
	return a.Allow()
}
