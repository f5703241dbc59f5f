package simulate

import (
	"fmt"
	"time"

	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// plan has the scenario's faults happen.
func (w *world) plan() {
	for i := range w.s.Faults {
		f := &w.s.Faults[i]
		switch f.Kind {
		case scenario.UsageLoss:
			w.chance.usageLoss = f.Probability
		case scenario.UsageDuplicate:
			w.chance.usageDuplicate = f.Probability
		case scenario.AckLoss:
			w.chance.ackLoss = f.Probability
		case scenario.DecisionLoss:
			w.chance.decisionLoss = f.Probability
		case scenario.PodRestart:
			w.restartEach(f.Every, f.Graceful)
		default:
			w.when(f.At, func() { w.strike(f) })
		}
	}
	for i := range w.s.Faults {
		if f := &w.s.Faults[i]; f.Kind == scenario.StoreLoses {
			w.loses(f)
		}
	}
}

// strike lets a fault happen whose time has come.
func (w *world) strike(f *scenario.Fault) {
	switch f.Kind {
	case scenario.AggregatorDown:
		w.owner().kill()
		w.after(f.For, func() { w.startOwner() })
	case scenario.StoreDown:
		w.store.SetDown(true)
		w.after(f.For, func() { w.store.SetDown(false) })
	case scenario.BrokerDown:
		w.brokerDown = true
		w.after(f.For, w.brokerBack)
	case scenario.OwnerMoves:
		w.moveOwner(f)
	case scenario.TopicMadeAnew:
		w.newTopic()
	case scenario.LimitChange:
		w.changeLimit(f)
	case scenario.PodsChange:
		w.resize(f.Pods)
	case scenario.PodsBelieved:
		w.believed, w.liveDue = f.Pods, true
	case scenario.UsageLoss, scenario.UsageDuplicate, scenario.AckLoss, scenario.DecisionLoss, scenario.PodRestart,
		scenario.StoreLoses:
		// planned from the beginning
	}
}

// owner is the newest aggregator.
func (w *world) owner() *owner { return w.owners[len(w.owners)-1] }

// brokerWait is how long something waits before it looks again whether the broker is back.
func (w *world) brokerWait() time.Duration { return 10 * time.Millisecond }

func (w *world) brokerBack() {
	w.brokerDown = false
	w.readable()
}

func (w *world) moveOwner(f *scenario.Fault) {
	old := w.owner()
	switch f.Old {
	case scenario.OldDies:
		old.kill()
		w.after(f.For, func() { w.startOwner() })
	case scenario.OldStalls:
		old.stall(f.For)
		w.startOwner()
	default:
		old.leave(func() { w.after(takeover, func() { w.startOwner() }) })
	}
}

// newTopic makes weir.usage anew, and empty. Those who know the old one learn of it after a while.
func (w *world) newTopic() {
	w.log = newUsageLog(w.rng)
	w.log.readable = w.now
	old := w.owner()
	old.leave(func() { w.after(takeover, func() { w.startOwner() }) })
	for _, p := range w.pods {

		w.after(w.uniform(w.s.Network.Downlink)+topicLooked, func() {
			if !p.dead {
				p.usageTopic()
				p.step()
			}
		})
	}
}

// topicLooked is how long a pod needs at most to see that the topic is another: it looks when a foreign header comes.
const topicLooked = 250 * time.Millisecond

// loses plans that the store comes back as it was before.
func (w *world) loses(f *scenario.Fault) {
	kept := newMemory()
	if f.Last > 0 {
		w.when(f.At-f.Last, func() { kept.Memory = w.store.Copy() })
	}
	w.when(f.At, func() { w.store.Memory = kept.Memory })
}

func (w *world) changeLimit(f *scenario.Fault) {
	if err := w.policies.setLimit(f.LimitName, f.Limit); err != nil {
		w.err = fmt.Errorf("scenario %s: %w", w.s.Name, err)
		return
	}
	w.judges.change(w)
	version, record, set := w.policies.version, w.policies.record, w.policies.set
	w.after(w.uniform(w.s.Network.Downlink), func() {
		w.policies.ownerSet = set
		for _, o := range w.owners {
			o.wake()
		}
	})
	for _, p := range w.pods {
		w.after(w.uniform(w.s.Network.Downlink), func() {
			if !p.dead {
				p.drive.Policy(policyKey, version, record)
				p.step()
			}
		})
	}
}

// resize adds pods, or takes the last ones away.
func (w *world) resize(n int) {
	for i := len(w.pods); i < n; i++ {
		w.startPod(i, fmt.Sprint("scenario/pod-", i))
	}
	for i := len(w.pods) - 1; i >= n; i-- {
		w.pods[i].terminate(func() {})
		w.pods = w.pods[:i]
	}
}

// restartEach restarts one pod after another.
func (w *world) restartEach(every time.Duration, graceful bool) {
	n := 0
	var again func()
	again = func() {
		if len(w.pods) > 0 {
			w.restart(n%len(w.pods), graceful, n)
		}
		n++
		w.after(every, again)
	}
	w.when(every, again)
}

// restart replaces a pod: gracefully by another pod, which takes its traffic while it drains; else the same pod comes
// back at once without what it had in memory.
func (w *world) restart(index int, graceful bool, n int) {
	old := w.pods[index]
	name := old.name
	if graceful {
		name = fmt.Sprint("scenario/pod-", index, "-", n)
	}
	w.pods[index] = nil
	if graceful {
		old.terminate(func() {})
	} else {
		old.kill()
	}
	w.startPod(index, name)
}
