package agent

import (
	"errors"
	"time"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/quota"
	"github.com/weirproxy/weir/sidecar/report"
)

const (
	// maxLanes bounds the partitions reported to, and so the acknowledgements under way.
	maxLanes = 1024
	// idle is how long the control goroutine sleeps at most.
	idle = 250 * time.Millisecond
)

// pace is when the control goroutine looks at reports and at its house.
type pace struct {
	flushAt   quota.Time // not before, unless urgent
	flushedAt quota.Time
	urgent    bool
	houseAt   quota.Time
	saveAt    quota.Time
	statusAt  quota.Time
	swept     int
}

// urgent receives after a check found a surge; nil, which never receives, within the gap of the last flush: a
// surge that no report can serve is not to keep this goroutine busy.
func (a *Agent) urgent() <-chan struct{} {
	if time.Duration(a.now()-a.pace.flushedAt) < report.UrgentGap {
		return nil
	}
	return a.ledger.Urgent()
}

// flushIfDue sends what is due, and returns when to look again.
func (a *Agent) flushIfDue(now quota.Time) time.Duration {
	if now >= a.pace.flushAt || a.pace.urgent {
		a.pace.urgent, a.pace.flushedAt = false, now
		a.flush(now, false)
		a.pace.flushAt = 0 // the next charge wakes
		if a.builder.Dirty() > 0 || a.builder.InFlight() > 0 {
			a.pace.flushAt = now + quota.Time(a.builder.Wait(now))
		}
	}
	wait := idle
	if a.pace.flushAt > now {
		wait = time.Duration(a.pace.flushAt - now)
	}
	if len(a.ledger.Urgent()) > 0 {
		wait = min(wait, report.UrgentGap)
	}
	return wait
}

// flush takes in what checks charged and hands due reports to the writer.
func (a *Agent) flush(now quota.Time, force bool) {
	a.takeMade(now)
	a.ledger.TakeDirty(a.builder.Mark)
	for _, p := range a.builder.Partitions() {
		if !a.canSend(p) {
			a.builder.Observe(p, now)
			continue
		}
		r, busy := a.builder.Flush(p, now, force)
		if busy {
			a.metrics.ReportsBusy.Inc()
		}
		if r != nil {
			a.send(r)
		}
	}
	if n := a.ledger.Reclaim(a.builder.Clean); n > 0 {
		a.metrics.SlotsFreed.Add(float64(n))
	}
}

// canSend: reports wait for Kafka and for the log's id; counts are cumulative, and lose nothing by it.
func (a *Agent) canSend(partition int32) bool {
	return partition >= 0 && a.logID != nil && a.link.writer() != nil
}

func (a *Agent) send(r *report.Report) {
	a.metrics.Reports.Inc()
	a.metrics.ReportBytes.Add(float64(len(r.Value)))
	a.metrics.ReportEntries.Add(float64(r.Entries))
	if r.Urgent {
		a.metrics.ReportsUrgent.Inc()
	}
	err := a.link.writer().Send(a.config.Topics.Usage, r.Partition, nil, r.Value, func(ack bus.Ack) {
		a.acks <- func() { a.acknowledged(r, ack) } // one a lane at a time: there is room
	})
	if err != nil {
		a.failed(r, err)
	}
}

func (a *Agent) acknowledged(r *report.Report, ack bus.Ack) {
	if ack.Err != nil {
		a.failed(r, ack.Err)
		return
	}
	now := a.now()
	a.reasons.clear(ReasonReports)
	if h := a.hearings[r.Partition]; h != nil {
		h.took.Observe(int64(ack.Took), now)
		if least, ok := h.took.Value(); ok {
			h.write(func() { h.fresh.SetLead(time.Duration(least) / 2) })
		}
	}
	a.builder.Acknowledged(r, ack.Offset, quota.Millis(ack.Appended.UnixMilli()), now)
}

func (a *Agent) failed(r *report.Report, err error) {
	a.metrics.ReportsFailed.Inc()
	a.builder.Failed(r)
	if !errors.Is(err, bus.ErrBusy) {
		a.reasons.set(ReasonReports, "usage cannot be reported: "+err.Error()+"; counts are kept and travel with the next report")
	}
}
