package system

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// The load of the fault tests: twice the limit, one client, three pods.
const (
	faultLimit = 150
	faultRate  = 300
	outage     = 10 * time.Second
)

// underFault runs the load through a fault and lets the fleet settle after it.
func underFault(t *testing.T, owners int, fault func(w *world.World, run *load.Run)) (*world.World, load.Result) {
	t.Helper()
	t.Parallel() // most of it is waiting
	w := world.Settled(t, 3, owners, world.Policy(world.EachClient(faultLimit, ""), world.Everything))
	run := w.Start(0, world.Uneven("acme", faultRate)...)
	phase(run, 4*time.Second)
	fault(w, run)
	phase(run, 4*time.Second)
	run.Stop()
	res := run.Wait()
	expectClean(t, res.Total())
	for _, p := range w.Pods {
		if n := p.Stat("ext_authz.error"); n > 0 {
			t.Errorf("%s: %d checks failed", p.Name, n)
		}
	}
	return w, res
}

// expectBounded asserts that no stretch of a second or more admitted above 1.3 times the limit.
func expectBounded(t *testing.T, tally *load.Tally) {
	t.Helper()
	times := world.After(tally.SentAt, world.Steady)
	for _, width := range []time.Duration{4 * time.Second, outage} {
		got := float64(load.MaxWindow(times, width.Milliseconds())) / width.Seconds() / faultLimit
		t.Logf("fullest %v: %.2f of the limit", width, got)
		if got > 1.3 {
			t.Errorf("%.2f times the limit over %v", got, width)
		}
	}
}

// One of two owners is killed, later the other one is asked to leave: partitions go on, and Redis
// has what the clients counted.
func TestOwnersComeAndGo(t *testing.T) {
	w, res := underFault(t, 2, func(w *world.World, run *load.Run) {
		w.Owners[0].Process.Kill()
		phase(run, outage)
		w.StartOwner(w.Owners[0])
		phase(run, 3*time.Second)
		if err := w.Owners[1].Process.Stop(); err != nil {
			t.Error(err)
		}
		phase(run, 3*time.Second)
	})
	expectBounded(t, res.Total())
	w.ExpectTotal("everything", res.Total().Admitted)
	w.ExpectTotal("each-client", res.Total().Admitted)
}

func TestCase16RedisAwayAndEmptied(t *testing.T) {
	w, res := underFault(t, 1, func(w *world.World, run *load.Run) {
		w.Redis.Stop()
		phase(run, outage)
		w.Redis.Start()
	})
	expectBounded(t, res.Total())
	w.ExpectTotal("everything", res.Total().Admitted)
	w.ExpectTotal("each-client", res.Total().Admitted)
}

func TestCase17KafkaAway(t *testing.T) {
	w, res := underFault(t, 1, func(w *world.World, run *load.Run) {
		w.Kafka.Stop()
		phase(run, outage)
		w.Kafka.Start()
		phase(run, 6*time.Second)
	})
	expectBounded(t, res.Total())
	w.ExpectTotal("everything", res.Total().Admitted)
}

func TestAllOwnersAway(t *testing.T) {
	w, res := underFault(t, 2, func(w *world.World, run *load.Run) {
		for _, o := range w.Owners {
			o.Process.Kill()
		}
		phase(run, outage)
		for _, o := range w.Owners {
			w.StartOwner(o)
		}
		phase(run, 10*time.Second)
	})
	expectBounded(t, res.Total())
	w.ExpectTotal("everything", res.Total().Admitted)
	w.ExpectTotal("each-client", res.Total().Admitted)
}

// Envoy's failure mode holds while a sidecar is gone. SIGTERM loses no counted request; SIGKILL at
// most what was not acknowledged.
func TestSidecarEnds(t *testing.T) {
	for name, end := range map[string]func(*parts.Process) error{
		"SIGTERM": (*parts.Process).Stop,
		"SIGKILL": func(p *parts.Process) error { p.Kill(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world.Settled(t, 3, 1, world.Policy(world.Everything))
			run := w.Start(0, world.Uneven("acme", faultRate)...)
			phase(run, 3*time.Second)
			if err := end(w.Pods[0].Sidecar); err != nil {
				t.Error(err)
			}
			phase(run, 2*time.Second)
			w.StartSidecar(w.Pods[0])
			w.PodReady(w.Pods[0])
			phase(run, 2*time.Second)
			run.Stop()
			tally := run.Wait().Total()
			expectClean(t, tally)
			if tally.Denied > 0 {
				t.Errorf("%d refused", tally.Denied)
			}
			counted := tally.Admitted - w.Uncounted()
			if w.Uncounted() == 0 {
				t.Error("Envoy never used its failure mode: the sidecar was not gone")
			}
			if name == "SIGTERM" {
				w.ExpectTotal("everything", counted)
				return
			}
			expectLost(w, "everything", counted, faultRate*6/10*3/2) // 1 s of adaptive skipping and a round trip on the pod with 60 %
		})
	}
}

// expectLost asserts that Redis has at most lost units less than counted, and never more.
func expectLost(w *world.World, limit string, counted, lost int) {
	w.T.Helper()
	time.Sleep(2 * time.Second)
	got, err := w.Total(limit)
	w.Must(err)
	missing := counted - int(got) //nolint:gosec // small
	w.T.Logf("%d of %d units lost", missing, counted)
	if missing < 0 || missing > lost {
		w.T.Fatalf("%d units lost, want 0 to %d", missing, lost)
	}
}

// Everything in the wrong order: sidecar and owner first, then Redis, then Kafka. No crash, no restart.
func TestStartedInTheWrongOrder(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	w.Write("p0.yaml", world.Policy(world.EachClient(1, ""), world.Everything))
	// Both servers get their addresses and are gone before anything asks for them.
	w.Kafka = parts.StartKafka(t, parts.KafkaOpts{})
	w.Redis = parts.StartRedis(t, parts.RedisOpts{})
	w.Upstream = parts.StartUpstream(t)
	w.Redis.Kill()
	w.Kafka.Kill()

	p, o := w.AddPod(), w.AddOwner()
	time.Sleep(3 * time.Second)
	w.Redis.Start()
	time.Sleep(2 * time.Second)
	w.Kafka.Start()
	w.EnsureTopics()
	w.PodReady(p)
	parts.Eventually(t, world.Patience, "the limit in force", func() error {
		_, body, err := world.Get("http://" + p.Admin + "/readyz")
		if err != nil {
			return err
		}
		for range 6 {
			if status, _, _ := w.Ask(p, "GET", "/", map[string]string{"x-api-key": "acme"}); status == 429 {
				return nil
			}
		}
		return errPassed(body)
	})
	for _, q := range []*parts.Process{p.Sidecar, o.Process} {
		if q.ExitCode() != -1 {
			t.Error("a program ended")
		}
	}
}

type errPassed string

func (e errPassed) Error() string { return "six requests passed; readiness: " + string(e) }
