package system

import (
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/parts"
)

// The load of the fault tests: twice the limit, one client, three pods.
const (
	faultLimit = 150
	faultRate  = 300
	outage     = 10 * time.Second
)

// underFault runs the load through a fault and lets the fleet settle after it.
func underFault(t *testing.T, owners int, fault func(w *world, run *load.Run)) (*world, load.Result) {
	t.Helper()
	w := settled(t, 3, owners, policy(eachClient(faultLimit, ""), everything))
	run := w.start(0, uneven("acme", faultRate)...)
	phase(run, 4*time.Second)
	fault(w, run)
	phase(run, 4*time.Second)
	run.Stop()
	res := run.Wait()
	expectClean(t, res.Total())
	for _, p := range w.pods {
		if n := sumStats(p.envoy.Stats(), "ext_authz.error"); n > 0 {
			t.Errorf("%s: %d checks failed", p.name, n)
		}
	}
	return w, res
}

// expectBounded asserts that no stretch of a second or more admitted above 1.3 times the limit.
func expectBounded(t *testing.T, tally *load.Tally) {
	t.Helper()
	times := after(tally.SentAt, steady)
	for _, width := range []time.Duration{4 * time.Second, outage} {
		got := float64(load.MaxWindow(times, width.Milliseconds())) / width.Seconds() / faultLimit
		t.Logf("fullest %v: %.2f of the limit", width, got)
		if got > 1.3 {
			t.Errorf("%.2f times the limit over %v", got, width)
		}
	}
}

func sumStats(stats map[string]int64, suffix string) (sum int64) {
	for name, v := range stats {
		if strings.HasPrefix(name, "cluster.") && strings.HasSuffix(name, suffix) {
			sum += v
		}
	}
	return sum
}

// One of two owners is killed, later the other one is asked to leave: partitions go on, and Redis
// has what the clients counted.
func TestOwnersComeAndGo(t *testing.T) {
	w, res := underFault(t, 2, func(w *world, run *load.Run) {
		w.owners[0].process.Kill()
		phase(run, outage)
		w.startOwner(w.owners[0])
		phase(run, 3*time.Second)
		if err := w.owners[1].process.Stop(); err != nil {
			t.Error(err)
		}
		phase(run, 3*time.Second)
	})
	expectBounded(t, res.Total())
	w.expectTotal("everything", res.Total().Admitted)
	w.expectTotal("each-client", res.Total().Admitted)
}

func TestCase16RedisAwayAndEmptied(t *testing.T) {
	w, res := underFault(t, 1, func(w *world, run *load.Run) {
		w.redis.Stop()
		phase(run, outage)
		w.redis.Start()
	})
	expectBounded(t, res.Total())
	w.expectTotal("everything", res.Total().Admitted)
	w.expectTotal("each-client", res.Total().Admitted)
}

func TestCase17KafkaAway(t *testing.T) {
	w, res := underFault(t, 1, func(w *world, run *load.Run) {
		w.kafka.Stop()
		phase(run, outage)
		w.kafka.Start()
		phase(run, 6*time.Second)
	})
	expectBounded(t, res.Total())
	w.expectTotal("everything", res.Total().Admitted)
}

func TestAllOwnersAway(t *testing.T) {
	w, res := underFault(t, 2, func(w *world, run *load.Run) {
		for _, o := range w.owners {
			o.process.Kill()
		}
		phase(run, outage)
		for _, o := range w.owners {
			w.startOwner(o)
		}
		phase(run, 10*time.Second)
	})
	expectBounded(t, res.Total())
	w.expectTotal("everything", res.Total().Admitted)
	w.expectTotal("each-client", res.Total().Admitted)
}

// uncounted are requests that Envoy let through since the check failed.
func (w *world) uncounted() (sum int) {
	w.t.Helper()
	for _, p := range w.pods {
		sum += int(sumStats(p.envoy.Stats(), "ext_authz.failure_mode_allowed"))
	}
	return sum
}

// Envoy's failure mode holds while a sidecar is gone. SIGTERM loses no counted request; SIGKILL at
// most what was not acknowledged.
func TestSidecarEnds(t *testing.T) {
	for name, end := range map[string]func(*parts.Process) error{
		"SIGTERM": (*parts.Process).Stop,
		"SIGKILL": func(p *parts.Process) error { p.Kill(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := settled(t, 3, 1, policy(everything))
			run := w.start(0, uneven("acme", faultRate)...)
			phase(run, 3*time.Second)
			if err := end(w.pods[0].sidecar); err != nil {
				t.Error(err)
			}
			phase(run, 2*time.Second)
			w.startSidecar(w.pods[0])
			w.podReady(w.pods[0])
			phase(run, 2*time.Second)
			run.Stop()
			tally := run.Wait().Total()
			expectClean(t, tally)
			if tally.Denied > 0 {
				t.Errorf("%d refused", tally.Denied)
			}
			counted := tally.Admitted - w.uncounted()
			if w.uncounted() == 0 {
				t.Error("Envoy never used its failure mode: the sidecar was not gone")
			}
			if name == "SIGTERM" {
				w.expectTotal("everything", counted)
				return
			}
			w.expectLost("everything", counted, faultRate*6/10*3/2) // 1 s of adaptive skipping and a round trip on the pod with 60 %
		})
	}
}

// expectLost asserts that Redis has at most lost units less than counted, and never more.
func (w *world) expectLost(limit string, counted, lost int) {
	w.t.Helper()
	time.Sleep(2 * time.Second)
	got, err := w.total(limit)
	w.must(err)
	missing := counted - int(got) //nolint:gosec // small
	w.t.Logf("%d of %d units lost", missing, counted)
	if missing < 0 || missing > lost {
		w.t.Errorf("%d units lost, want 0 to %d", missing, lost)
	}
}

// Everything in the wrong order: sidecar and owner first, then Redis, then Kafka. No crash, no restart.
func TestStartedInTheWrongOrder(t *testing.T) {
	w := newWorld(t)
	w.write("p0.yaml", policy(eachClient(1, ""), everything))
	// Both servers get their addresses and are gone before anything asks for them.
	w.kafka = parts.StartKafka(t, parts.KafkaOpts{})
	w.redis = parts.StartRedis(t, parts.RedisOpts{})
	w.upstream = parts.StartUpstream(t)
	w.redis.Kill()
	w.kafka.Kill()

	p, o := w.addPod(), w.addOwner()
	time.Sleep(3 * time.Second)
	w.redis.Start()
	time.Sleep(2 * time.Second)
	w.kafka.Start()
	w.ensureTopics()
	w.podReady(p)
	parts.Eventually(t, patience, "the limit in force", func() error {
		_, body, err := get("http://" + p.admin + "/readyz")
		if err != nil {
			return err
		}
		for range 6 {
			if status, _, _ := w.ask(p, "GET", "/", map[string]string{"x-api-key": "acme"}); status == 429 {
				return nil
			}
		}
		return errPassed(body)
	})
	for _, q := range []*parts.Process{p.sidecar, o.process} {
		if q.ExitCode() != -1 {
			t.Error("a program ended")
		}
	}
}

type errPassed string

func (e errPassed) Error() string { return "six requests passed; readiness: " + string(e) }
