package system

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// expectClean fails on anything but a 2xx or a 429: no check failed, none was let through unasked.
func expectClean(t *testing.T, tally *load.Tally) {
	t.Helper()
	t.Logf("%d requests, latency p50 %v p99 %v", tally.Requests(), tally.Latency.Quantile(0.5), tally.Latency.Quantile(0.99))
	if tally.Errors > 0 || len(tally.Other) > 0 {
		t.Errorf("%d errors (last: %v), other answers %v", tally.Errors, tally.LastError, tally.Other)
	}
	if tally.Unsent*10 > tally.Requests() {
		t.Errorf("the machine is too slow for the load: %d requests were not sent", tally.Unsent)
	}
}

// expectRate asserts the robust bounds of a limit a second: no window beyond 1.3 times it, and a
// mean within 0.9 and 1.05 of it.
func expectRate(t *testing.T, tally *load.Tally, limit float64, length time.Duration) {
	t.Helper()
	times := world.After(tally.SentAt, world.Steady)
	worst := float64(load.MaxWindow(times, 1000)) / limit
	mean := float64(len(times)) / (length - world.Steady).Seconds() / limit
	t.Logf("fullest second %.2f of the limit, mean %.3f", worst, mean)
	if worst > 1.3 {
		t.Errorf("a one-second window holds %.2f of the limit", worst)
	}
	if mean < 0.9 || mean > 1.05 {
		t.Errorf("the mean is %.3f of the limit", mean)
	}
}

// One quota over three pods: whoever gets how much, the fleet admits the limit. A world.Steady threefold
// load still gets all of it, since refusals charge nothing.
func TestCase01SlidingWindowOverThreePods(t *testing.T) {
	w := world.Settled(t, 3, 2, world.Policy(world.EachClient(300, ""), world.Everything))
	const length = 12 * time.Second
	tally := w.Start(length, world.Uneven("acme", 900)...).Wait().Of("acme")
	expectClean(t, tally)
	expectRate(t, tally, 300, length)
	w.ExpectTotal("each-client", tally.Admitted)
	w.ExpectTotal("everything", tally.Admitted)
}

func TestTokenBucketOverThreePods(t *testing.T) {
	bucket := "  - {name: each-client, counters: [Client], rates: [{limit: 300, window: 1s, algorithm: TokenBucket, burst: 60}]}\n"
	w := world.Settled(t, 3, 2, world.Policy(bucket))
	const length = 12 * time.Second
	tally := w.Start(length, world.Uneven("acme", 900)...).Wait().Of("acme")
	expectClean(t, tally)
	expectRate(t, tally, 300, length)
	w.ExpectTotal("each-client", tally.Admitted)
}

// A narrow limit that refuses leaves the broad one uncharged: exact, from Redis.
func TestCase02NarrowRefusalLeavesBroadUncharged(t *testing.T) {
	narrow := "  - {name: writes, when: {methods: [POST]}, counters: [Client], rates: [{limit: 50, window: 1s}]}\n"
	w := world.Settled(t, 3, 2, world.Policy(narrow, world.Everything))
	const length = 8 * time.Second
	sources := world.Uneven("acme", 300)
	for i := range sources {
		sources[i].Request.Method = "POST"
	}
	reads := world.Uneven("reads", 30)
	res := w.Start(length, append(sources, reads...)...).Wait()
	writes, total := res.Of("acme"), res.Total()
	expectClean(t, total)
	if writes.Denied < writes.Admitted {
		t.Fatalf("the narrow limit did not refuse: %d of %d", writes.Denied, writes.Sent)
	}
	w.ExpectTotal("writes", writes.Admitted)
	w.ExpectTotal("everything", total.Admitted)
}

// A limit is raised and lowered under load: the count is kept, and every pod enforces the new one.
func TestCase03RaiseAndLowerUnderLoad(t *testing.T) {
	w := world.Settled(t, 3, 1, world.Policy(world.EachClient(100, ""), world.Everything))
	run := w.Start(0, world.Uneven("acme", 900)...)
	for _, limit := range []int{300, 60} {
		phase(run, 3*time.Second)
		w.Write("p0.yaml", world.Policy(world.EachClient(limit, ""), world.Everything))
		phase(run, 4*time.Second) // the directory is looked through each second
		from := run.Elapsed()
		phase(run, 4*time.Second)
		tally := run.Result().Of("acme")
		got := float64(tally.AdmittedBetween(from, from+4*time.Second)) / 4
		t.Logf("limit %d: %.0f/s admitted", limit, got)
		if got < 0.7*float64(limit) || got > 1.15*float64(limit) {
			t.Errorf("limit %d: %.0f/s admitted", limit, got)
		}
	}
	run.Stop()
	res := run.Wait()
	expectClean(t, res.Total())
	for _, p := range w.Pods {
		if res.On(p.Name).Denied == 0 {
			t.Errorf("%s refused nothing", p.Name)
		}
	}
	w.ExpectTotal("everything", res.Total().Admitted)
	w.ExpectTotal("each-client", res.Total().Admitted)
}

func phase(run *load.Run, d time.Duration) {
	for end := run.Elapsed() + d; run.Elapsed() < end; {
		time.Sleep(10 * time.Millisecond)
	}
}

// Shadow refuses nothing and says what it would have refused.
func TestShadowRefusesNothing(t *testing.T) {
	w := world.Settled(t, 3, 1, world.Policy(world.EachClient(100, ", mode: Shadow"), world.Everything))
	tally := w.Start(6*time.Second, world.Uneven("acme", 600)...).Wait().Of("acme")
	expectClean(t, tally)
	if tally.Denied > 0 {
		t.Errorf("%d refused in shadow", tally.Denied)
	}
	would := 0.0
	for _, p := range w.Pods {
		would += w.Metric(p.Admin, "weir_sidecar_limit_refusals_total", `mode="shadow"`)
	}
	if would < float64(tally.Admitted)/2 {
		t.Errorf("%.0f would-refuse counted of %d at six times the limit", would, tally.Admitted)
	}
	w.ExpectTotal("everything", tally.Admitted)
}

// enforcePercent enforces on the same clients on every pod, each time.
func TestEnforcePercentIsSticky(t *testing.T) {
	w := world.Settled(t, 3, 1, world.Policy(world.EachClient(1, ", enforcePercent: 50")))
	denied := map[string]map[string]bool{}
	for i := range 40 {
		client := "client-" + strconv.Itoa(i)
		denied[client] = map[string]bool{}
		for _, p := range w.Pods {
			for range 8 {
				if status, _, _ := w.Ask(p, "GET", "/", map[string]string{"x-api-key": client}); status == 429 {
					denied[client][p.Name] = true
				}
			}
		}
	}
	enforced := 0
	for client, pods := range denied {
		if len(pods) != 0 && len(pods) != len(w.Pods) {
			t.Errorf("%s is refused on %v only", client, pods)
		}
		if len(pods) > 0 {
			enforced++
		}
	}
	if enforced < 8 || enforced > 32 {
		t.Errorf("%d of 40 clients enforced at 50 %%", enforced)
	}
}

// A bad edit leaves the last good version in force; a good one is taken; deletion ends enforcement.
func TestPolicyFilesAreFollowed(t *testing.T) {
	w := world.Settled(t, 1, 1, world.Policy(world.EachClient(1, "")))
	p := w.Pods[0]
	refuses := func() error {
		for range 6 {
			if status, _, _ := w.Ask(p, "GET", "/", map[string]string{"x-api-key": "acme"}); status == 429 {
				return nil
			}
		}
		return fmt.Errorf("six requests passed")
	}
	parts.Eventually(t, world.Patience, "the limit in force", refuses)
	w.Write("p0.yaml", world.Policy("  - {name: each-client, rates: [{limit: 0, window: 1s}]}\n"))
	time.Sleep(3 * time.Second)
	parts.Eventually(t, world.Patience, "the last good version in force", refuses)
	w.Write("p0.yaml", "")
	parts.Eventually(t, world.Patience, "no policy", func() error {
		if refuses() == nil {
			return fmt.Errorf("still refused")
		}
		return nil
	})
}
