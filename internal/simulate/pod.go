package simulate

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/agent"
	"github.com/weirproxy/weir/sidecar/match"
)

const (
	// wakeUp is from a check's signal until the control goroutine runs.
	wakeUp = 100 * time.Microsecond
	// produceTimeout is how long a report waits for a broker.
	produceTimeout = 2 * time.Second
	// drainEach is how often a pod that ends looks for what else is to be sent, drainFor how long it does.
	drainEach = 5 * time.Millisecond
	drainFor  = 5 * time.Second
	// newPodReads is how much of the decisions a new pod reads.
	newPodReads = 6 * time.Second
)

// pod is one run of one sidecar.
type pod struct {
	w       *world
	name    string
	agent   *agent.Agent
	drive   *agent.Driver
	askers  []*asker // by source
	dead    bool
	cut     bool        // its reports reach no broker
	gaveUp  bool        // it ended with something unreported, after drainFor
	log     bus.TopicID // of weir.usage, as far as it knows
	lastUp  quota.Time
	down    quota.Time // the newest arrival of a decision
	stepAt  quota.Time // 0: none is planned
	ready   bool       // it has read the decisions topic to its end
	limit   quota.Time // of its draining
	drained func()
}

// startPod begins a new run of the pod at index. It knows the policies at once (its file of last good ones), and decisions as
// soon as it has read what is retained.
func (w *world) startPod(index int, name string) *pod {
	p := &pod{w: w, name: name, askers: make([]*asker, len(w.s.Traffic))}
	p.agent = agent.New(agent.Config{
		Name: name, Pod: match.Pod{Namespace: namespace, Targets: w.policies.targets}, Keys: w.keys, Topics: w.topics,
		MaxCounters: w.s.Timing.MaxCounters, ReadyAfter: time.Hour, Drain: drainFor,
		Clock: func() quota.Time { return w.now }, Seed: w.rng.Uint64() | 1, Cells: w.cells.take,
	}, zap.NewNop(), prometheus.NewRegistry())
	p.drive = p.agent.Drive(p)
	p.drive.Policy("installation", 0, w.policies.installation())
	p.drive.Policy(policyKey, w.policies.version, w.policies.record)
	p.drive.PoliciesRead()
	p.usageTopic()
	p.down = w.now + quota.Time(w.uniform(w.s.Network.Downlink))
	w.queue.put(p.down, p.catchUp)
	if index < len(w.pods) {
		w.pods[index] = p
	} else {
		w.pods = append(w.pods, p)
	}
	p.step()
	return p
}

// usageTopic tells the pod which topic weir.usage is now.
func (p *pod) usageTopic() {
	p.log = p.w.log.id
	p.drive.UsageTopic(p.log)
}

// catchUp reads what is retained of the decisions.
func (p *pod) catchUp() {
	if p.dead {
		return
	}
	oldest := p.w.now - quota.Time(newPodReads)
	for i := range p.w.history {
		if d := &p.w.history[i]; d.at >= oldest {
			p.take(d)
		}
	}
	p.drive.CaughtUp(lane)
	p.ready = true
	p.step()
}

// step is one round of the control goroutine.
func (p *pod) step() {
	if p.dead {
		return
	}
	p.stepAt = 0
	p.plan(p.w.now + quota.Time(p.drive.Step()))
}

func (p *pod) plan(at quota.Time) {
	if p.stepAt != 0 && p.stepAt <= at {
		return
	}
	p.stepAt = at
	p.w.queue.put(at, func() {
		if p.stepAt == at {
			p.step()
		}
	})
}

// checked lets the control goroutine hear of what a check asked for.
func (p *pod) checked() {
	if p.drive.Roused() {
		p.plan(p.w.now + quota.Time(wakeUp))
	}
}

// hear delivers a batch, in order.
func (p *pod) hear(d *decision, at quota.Time) {
	p.down = max(p.down, at)
	p.w.queue.put(p.down, func() {
		if p.dead || !p.ready {
			return // what comes before the end of the topic is read is in what catchUp reads
		}
		p.take(d)
		p.step()
	})
}

// take hands a batch to the agent.
func (p *pod) take(d *decision) {
	take := func() { p.drive.Decisions(lane, d.value, d.appended) }
	if p.w.hooks.heard != nil {
		p.w.hooks.heard(p, d, take)
		return
	}
	take()
}

// kill ends the pod at once, with all it has not reported.
func (p *pod) kill() { p.dead = true }

// terminate ends the pod as SIGTERM does; then is called once it is gone.
func (p *pod) terminate(then func()) {
	p.drained, p.limit = then, p.w.now+quota.Time(drainFor)
	p.w.leaving = append(p.w.leaving, p)
	p.drain()
}

func (p *pod) drain() {
	if p.dead {
		return
	}
	if done := p.drive.Drain(); done || p.w.now >= p.limit {
		p.drive.Leave()
		p.dead, p.gaveUp = true, !done
		p.drained()
		return
	}
	p.w.after(drainEach, p.drain)
}

var errTimeout = errors.New("simulated: the broker did not answer in time")

// Send implements agent.Sender: the writer and the way to the log.
func (p *pod) Send(topic string, _ int32, key, value []byte, done func(bus.Ack)) error {
	switch topic {
	case p.w.topics.Usage:
		p.report(value, done)
	case p.w.topics.Status:
		p.w.status(key, value)
		done(bus.Ack{})
	}
	return nil
}

// report takes a report to the log, and the acknowledgement back.
func (p *pod) report(value []byte, done func(bus.Ack)) {
	w := p.w
	w.tally.usage++
	half := w.uniform(w.s.Network.Uplink) / 2
	way := half + w.tail()
	sent := w.now
	p.lastUp = max(p.lastUp, sent+quota.Time(way))
	back := way
	if w.s.Network.Ack != nil {
		back = w.uniform(*w.s.Network.Ack)
	}
	w.queue.put(p.lastUp, func() { p.arrive(value, sent, half, back, done) })
}

func (p *pod) arrive(value []byte, sent quota.Time, read, back time.Duration, done func(bus.Ack)) {
	w := p.w
	answer := func(wait time.Duration, a bus.Ack) {
		w.after(wait, func() {
			if p.dead {
				return
			}
			a.Took = time.Duration(w.now - sent)
			if a.Err == nil && w.hooks.acknowledged != nil {
				w.hooks.acknowledged(p, value)
			}
			done(a)
			p.step()
		})
	}
	away := w.brokerDown || p.cut
	switch {
	case away && time.Duration(w.now-sent) >= produceTimeout:
		answer(0, bus.Ack{Err: errTimeout})
	case away:
		w.after(min(w.brokerWait(), produceTimeout-time.Duration(w.now-sent)), func() { p.arrive(value, sent, read, back, done) })
	case w.lost(w.chance.usageLoss):
		answer(back, bus.Ack{Err: errTimeout})
	case w.lost(w.chance.usageLate):
		p.appendLate(value, sent, read)
		answer(back, bus.Ack{Err: errTimeout})
	default:
		offset := p.append(value, sent, read)
		if w.lost(w.chance.usageDuplicate) {
			offset = p.append(value, sent, read)
		}
		if w.lost(w.chance.usageRepeat) {
			p.appendLate(value, sent, read)
		}
		if w.lost(w.chance.ackLoss) {
			answer(back, bus.Ack{Err: errTimeout})
			return
		}
		answer(back, bus.Ack{Offset: offset, Appended: w.appendTime()})
	}
}

// append puts a report into the log.
func (p *pod) append(value []byte, sent quota.Time, read time.Duration) (offset int64) {
	offset = p.w.appendUsage(value, read)
	if p.w.hooks.appended != nil {
		p.w.hooks.appended(p, value, sent, offset)
	}
	return offset
}

// appendLate does so after a while, if it is the same log then and the broker is there.
func (p *pod) appendLate(value []byte, sent quota.Time, read time.Duration) {
	w, id := p.w, p.w.log.id
	w.after(w.late(), func() {
		if id == w.log.id && !w.brokerDown {
			p.append(value, sent, read)
		}
	})
}

// appendUsage puts a record into the log and lets owners read it.
func (w *world) appendUsage(value []byte, read time.Duration) int64 {
	offset, readable := w.log.append(value, w.now, read)
	w.queue.put(readable, w.readable)
	return offset
}

// readable: the log has something new for its readers.
func (w *world) readable() {
	for _, o := range w.owners {
		o.step()
	}
}

// status takes a pod's record to the aggregators.
func (w *world) status(key, value []byte) {
	name := string(key)
	if value != nil {
		value = append([]byte(nil), value...)
	}
	way := w.uniform(w.s.Network.Uplink)
	w.after(way, func() {
		m := bus.Message{Key: []byte(name), Value: value, Appended: w.appendTime()}
		w.liveDue = w.book.Apply(m, time.Duration(w.now)) || w.liveDue
	})
}
