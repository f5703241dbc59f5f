package system

import (
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// remakeTopic deletes a topic and has topics ensure make it anew, as a person would.
func remakeTopic(t *testing.T, w *world.World, topic string) {
	t.Helper()
	config := sarama.NewConfig()
	config.Version = sarama.V4_0_0_0
	admin, err := sarama.NewClusterAdmin([]string{w.Kafka.Addr()}, config)
	w.Must(err)
	defer func() { _ = admin.Close() }()
	w.Must(admin.DeleteTopic(topic))
	parts.Eventually(t, world.Patience, topic+" is gone", func() error {
		there, err := admin.ListTopics()
		if _, still := there[topic]; err == nil && still {
			err = sarama.ErrTopicAlreadyExists
		}
		return err
	})
	w.EnsureTopics()
}

// The usage topic is deleted under load and made anew: no check fails, no program ends, the fleet
// enforces again, and what is admitted from then on is counted to the unit.
func TestUsageTopicMadeAnew(t *testing.T) {
	w, res := underFault(t, 1, func(w *world.World, run *load.Run) {
		remakeTopic(t, w, "weir.usage")
		phase(run, outage)
	})
	expectBounded(t, res.Total())
	for _, p := range w.Pods {
		if p.Sidecar.ExitCode() != -1 {
			t.Errorf("%s ended", p.Name)
		}
	}
	if w.Owners[0].Process.ExitCode() != -1 {
		t.Error("the aggregator ended")
	}
	w.Ready()
	before := settledTotal(t, w, "everything")
	t.Logf("%d of %d counted over the change", before, res.Total().Admitted)

	tally := w.Start(4*time.Second, world.Uneven("acme", faultRate)...).Wait().Total()
	expectClean(t, tally)
	if tally.Denied == 0 {
		t.Error("nothing refused at twice the limit")
	}
	w.ExpectTotal("everything", before+tally.Admitted)
}

var errMoving = errors.New("it moves")

// settledTotal is a limit's total once it has stopped moving.
func settledTotal(t *testing.T, w *world.World, limit string) (total int) {
	t.Helper()
	last := -1
	parts.Eventually(t, world.Patience, "the total of "+limit+" stands still", func() error {
		time.Sleep(500 * time.Millisecond)
		n, err := w.Total(limit)
		total = int(n) //nolint:gosec // small
		if err == nil && total != last {
			last, err = total, errMoving
		}
		return err
	})
	return total
}

// Usage cannot be written while decisions can (rights, a full disk, too few replicas): pods fall back to
// their own shares, nobody far below a limit is refused, and all is counted once it can be.
func TestUsageCannotBeWritten(t *testing.T) {
	w := world.Settled(t, 3, 1, toxicsPolicy)
	a := newAccount(w)
	run := w.Start(0, toxicsSources()...)
	phase(run, 2*time.Second)
	before := run.Result().Of("bravo").Denied
	largestRecord(w, "10")
	phase(run, outage)
	largestRecord(w, "1048588")
	if n := run.Result().Of("bravo").Denied - before; n > 20 {
		t.Errorf("%d of about %.0f refused at a third of the limit", n, eachClientLimit/3*outage.Seconds())
	}
	phase(run, 2*time.Second)
	run.Stop()
	res := run.Wait()
	expectClean(t, res.Total())
	a.enter(res)
	a.compare(t, leeway{})
}

// largestRecord sets max.message.bytes of weir.usage.
func largestRecord(w *world.World, bytes string) {
	w.T.Helper()
	setTopic(w, "weir.usage", "max.message.bytes", bytes)
}
