package system

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// scenario is one fault between the parts. do begins it, holds it and ends it, under load.
type scenario struct {
	name string
	do   func(f *trouble)
}

const delay = 200 * time.Millisecond

var latencyToKafka = scenario{name: "200 ms to Kafka and 200 ms back", do: func(f *trouble) {
	f.w.KafkaProxy.Add(parts.Latency(delay))
	f.last()
	f.grows("weir_sidecar_reports_coalesced_total", 3)
	f.w.KafkaProxy.Remove(parts.Latency(delay))
}}

var latencyToRedis = scenario{name: "200 ms to Redis and 200 ms back", do: func(f *trouble) {
	f.w.RedisProxy.Add(parts.Latency(delay))
	from, before := f.run.Elapsed(), flushes(f.w)
	f.last()
	// A partition's flushes follow one another, and only one partition has any.
	if n, most := flushes(f.w)-before, int((f.run.Elapsed()-from)/(2*delay))+2; n > most {
		f.w.T.Fatalf("%d flushes where each takes 400 ms, want at most %d: the delay is not in force", n, most)
	}
	f.w.RedisProxy.Remove(parts.Latency(delay))
}}

var cuts = scenario{name: "connections cut again and again", do: func(f *trouble) {
	each := max(f.length/10, 400*time.Millisecond)
	for end := f.run.Elapsed() + f.length; f.run.Elapsed() < end; {
		f.w.KafkaProxy.Cut()
		phase(f.run, each)
		f.w.RedisProxy.Cut()
		phase(f.run, each)
	}
	f.grows("weir_sidecar_read_errors_total", 3)
}}

// slow is what a connection to the slow broker carries: less than the pods' reports take.
var slow = parts.Bandwidth(3)

var slowKafka = scenario{name: "Kafka slowed to 3 kB a second", do: func(f *trouble) {
	f.w.KafkaProxy.Add(slow)
	f.last()
	f.grows("weir_sidecar_reports_coalesced_total", 3)
	f.w.KafkaProxy.Remove(slow)
}}

// away is a server that first falls silent, as behind a broken network, and then refuses.
func away(p *parts.Proxy, f *trouble, shows string) {
	p.Add(parts.Silence())
	phase(f.run, f.length/2)
	f.grows(shows, 1)
	p.Down()
	p.Remove(parts.Silence())
	phase(f.run, f.length/2)
	p.Up()
}

var kafkaAway = scenario{name: "Kafka silent, then refusing", do: func(f *trouble) {
	away(f.w.KafkaProxy, f, "weir_sidecar_reports_failed_total")
}}

var redisAway = scenario{name: "Redis silent, then refusing", do: func(f *trouble) {
	away(f.w.RedisProxy, f, "weir_aggregator_store_errors_total")
}}

var ownerKilled = scenario{name: "the owner killed while Kafka is slow", do: func(f *trouble) {
	f.w.KafkaProxy.Add(slow)
	phase(f.run, f.length/2)
	o := owner(f.w)
	o.Process.Kill()
	if long { // beyond its session, so that the other one takes over
		f.last()
	}
	f.w.StartOwner(o)
	phase(f.run, f.length/2)
	f.w.KafkaProxy.Remove(slow)
}}

var podKilled = scenario{name: "a pod killed while Kafka takes 400 ms", do: func(f *trouble) {
	f.w.KafkaProxy.Add(parts.Latency(delay))
	phase(f.run, f.length/2)
	f.killed = f.run.Elapsed()
	f.w.Pods[0].Sidecar.Kill()
	phase(f.run, time.Second)
	f.w.StartSidecar(f.w.Pods[0])
	phase(f.run, f.length/2)
	f.w.KafkaProxy.Remove(parts.Latency(delay))
	f.w.PodReady(f.w.Pods[0])
}}

// owner is the aggregator that decides the target's partition.
func owner(w *world.World) *world.Owner {
	w.T.Helper()
	for _, o := range w.Owners {
		if o.Owns(wirev1.Partition(world.Target, 4)) {
			return o
		}
	}
	w.T.Fatalf("no aggregator owns the target")
	return nil
}

// long is set by `make test-long`.
var long = os.Getenv("WEIR_LONG") != ""

// Whatever is done to the connections between the parts, each check is answered, and once it is over
// each total is to the unit what clients were admitted. Here the faults come one after the other and
// are short; test-long takes each by itself.
func TestFaultsBetweenParts(t *testing.T) {
	w := world.Proxied(t, 3, 2, toxicsPolicy)
	a := newAccount(w)
	if !long {
		a.survive(t, time.Second, latencyToKafka, latencyToRedis, cuts, slowKafka, redisAway, ownerKilled)
		return
	}
	for _, s := range []scenario{
		latencyToKafka, latencyToRedis, cuts, slowKafka, kafkaAway, redisAway, ownerKilled, podKilled,
	} {
		if !t.Run(s.name, func(t *testing.T) { a.survive(t, 24*time.Second, s) }) {
			break // the next one would begin with what this one left
		}
	}
}

// survive runs the load through faults, prints how the limits held, and compares the counts.
func (a *account) survive(t *testing.T, length time.Duration, scenarios ...scenario) {
	run := a.w.Start(0, toxicsSources()...)
	phase(run, time.Second)
	var b strings.Builder
	var f *trouble
	for _, s := range scenarios {
		f = begin(a.w, run, length)
		h := hold(run, func() { s.do(f) })
		fmt.Fprintf(&b, "| %-38s | %s\n", s.name, h)
		h.expect(t, s)
		phase(run, 200*time.Millisecond)
	}
	run.Stop()
	res := run.Wait()
	a.enter(res)
	expectClean(t, res.Total())
	t.Logf("during the faults:\n| %-38s | seconds | acme / limit | fullest second | bravo refused |\n%s", "fault", b.String())
	if f.killed > 0 {
		a.compare(t, a.excuse(res, f.killed))
		return
	}
	a.expectNoFailure(t)
	a.compare(t, leeway{})
}

// held is how the limits held during a fault: of acme, who asks for twice its own, and of bravo, who
// asks for a third of it.
type held struct {
	length        time.Duration
	acme, fullest float64 // of the limit: in all, and in the fullest second
	refused, all  int     // of bravo's requests
}

func hold(run *load.Run, fault func()) held {
	before, from := run.Result().Of("bravo"), run.Elapsed()
	fault()
	res, to := run.Result(), run.Elapsed()
	var during []int64
	for _, at := range res.Of("acme").SentAt {
		if at >= from.Milliseconds() && at < to.Milliseconds() {
			during = append(during, at)
		}
	}
	h := held{length: to - from, refused: res.Of("bravo").Denied - before.Denied}
	h.acme = float64(len(during)) / h.length.Seconds() / eachClientLimit
	h.fullest = float64(load.MaxWindow(during, 1000)) / eachClientLimit
	h.all = h.refused + res.Of("bravo").Admitted - before.Admitted
	return h
}

func (h held) String() string {
	return fmt.Sprintf("%7.1f | %12.2f | %14.2f | %4d of %5d |", h.length.Seconds(), h.acme, h.fullest, h.refused, h.all)
}

// expect asserts robust bounds of faults that last: over all of it not much more than the limit, and a
// client far below its own is left alone.
func (h held) expect(t *testing.T, s scenario) {
	t.Helper()
	if h.length < outage {
		return
	}
	if h.acme > 1.3 {
		t.Errorf("%s: %.2f times the limit over %v", s.name, h.acme, h.length)
	}
	if h.refused*20 > h.all {
		t.Errorf("%s: %d of %d refused at a third of the limit", s.name, h.refused, h.all)
	}
}

// expectNoFailure fails where an Envoy let a request through because its check failed.
func (a *account) expectNoFailure(t *testing.T) {
	t.Helper()
	for _, p := range a.w.Pods {
		if n := p.Stat("ext_authz.error"); n > 0 {
			t.Errorf("%s: %d checks failed", p.Name, n)
		}
	}
}

// excuse is what the kill of the first pod's sidecar may lose: what it admitted since its last report
// that was acknowledged. A report takes 400 ms to be so, the next one waits for it, and one of few
// units may wait for a second.
func (a *account) excuse(res load.Result, killed time.Duration) leeway {
	return leeway{
		lost:      res.On(a.w.Pods[0].Name).AdmittedBetween(killed-2*time.Second, killed+100*time.Millisecond),
		uncounted: a.w.Uncounted(),
	}
}
