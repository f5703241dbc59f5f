package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/quota"
)

// statusPartition holds all of weir.status.
const statusPartition = 0

// sendStatus tells the installation what this pod has in force. A record that is lost is made good by
// the next heartbeat.
func (a *Agent) sendStatus(now quota.Time) {
	if a.link.writer() == nil {
		return
	}
	value, err := proto.Marshal(a.status(now))
	if err != nil {
		a.metrics.StatusFailed.Inc()
		return
	}
	a.sendStatusRecord(value, func(bus.Ack) {})
}

// sendStatusRecord: done runs on the control goroutine, also where the record was not taken.
func (a *Agent) sendStatusRecord(value []byte, done func(bus.Ack)) {
	finish := func(ack bus.Ack) {
		if ack.Err != nil {
			a.metrics.StatusFailed.Inc()
		}
		done(ack)
	}
	err := a.link.writer().Send(a.config.Topics.Status, statusPartition, []byte(a.config.Name), value, func(ack bus.Ack) {
		a.acks <- func() { finish(ack) }
	})
	if err != nil {
		finish(bus.Ack{Err: err})
	}
}

func (a *Agent) status(now quota.Time) *wirev1.PodStatus {
	state := a.health.get()
	s := &wirev1.PodStatus{
		Pod: a.config.Name, PodEpoch: a.podEpoch,
		Targets:  slices.Sorted(maps.Keys(a.targets)),
		Policies: a.policies.applied(),
		Ready:    state.Ready, Degraded: state.Degraded, Reasons: state.Texts(),
		ProgramVersion: a.config.Version, KeyFingerprint: a.config.Keys.Fingerprint(),
	}
	for _, p := range slices.Sorted(maps.Keys(a.hearings)) {
		lag := &wirev1.PartitionLag{Partition: p}
		if age, ok := a.hearings[p].fresh.Age(now); ok {
			lag.HeaderAgeMs = proto.Int64(max(age.Milliseconds(), 0))
		}
		s.Lags = append(s.Lags, lag)
	}
	return s
}

// finish is the agent's end: what checks have charged goes out and is acknowledged, then the pod leaves
// the status topic; all of it within Config.Drain.
func (a *Agent) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), a.config.Drain)
	defer cancel()
	if a.link.writer() != nil {
		a.drain(ctx)
		a.leave(ctx)
	}
	a.save()
	if n := a.unreported(); n > 0 {
		a.log.Warn("stopped with usage unreported", zap.Int(log.Count, n))
	}
}

// drainPeriod is how often the end looks for what else is to be sent.
const drainPeriod = 5 * time.Millisecond

// drain sends until nothing is dirty.
func (a *Agent) drain(ctx context.Context) {
	for {
		a.flush(a.now(), true)
		if a.unreported() == 0 || !a.await(ctx, drainPeriod) {
			return
		}
	}
}

// await handles one event, or waits for a while; false: ctx has ended.
func (a *Agent) await(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case ack := <-a.acks:
		ack()
	case event := <-a.events: // readers must not be held up while Kafka is needed
		event()
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

func (a *Agent) unreported() int { return a.builder.Dirty() + a.builder.InFlight() }

// leave writes the tombstone.
func (a *Agent) leave(ctx context.Context) {
	left := false
	a.sendStatusRecord(nil, func(bus.Ack) { left = true })
	for waiting := true; waiting && !left; {
		waiting = a.await(ctx, drainPeriod)
	}
}
