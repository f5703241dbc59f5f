package leases

import "time"

// logs are the two partitions of one target.
type logs struct {
	usage    []usage
	batches  []Logged[Batch]
	sending  []sending
	brokerAt int64         // ms until which the broker in charge stays the same
	ahead    time.Duration // its clock
}

// usage is a report in the log.
type usage struct {
	Logged[Report]
	arrives int64 // at its owner
}

// sending is a report on its way to the log.
type sending struct {
	report  *Report
	appends int64
	acked   bool
}

// brokers is for how long one broker is in charge.
const brokers = 700 * time.Millisecond

// stamp is the time of the broker in charge.
func (s *sim) stamp() time.Duration {
	if s.ms >= s.log.brokerAt {
		s.log.brokerAt = s.ms + brokers.Milliseconds()
		s.log.ahead = time.Duration(s.rng.Float64() * float64(s.Stamps))
	}
	return s.at() + s.log.ahead
}

// send sends a report towards the log, unless the way is cut.
func (s *sim) send(r *Report, lost bool) {
	s.res.Reports++
	if lost || s.chance(s.Loss) {
		return
	}
	at := s.ms + s.delay(s.UplinkMin/2, s.UplinkMax/2)
	s.log.sending = append(s.log.sending, sending{r, at, !s.chance(s.AckLoss)})
	if s.chance(s.Duplicate) {
		s.log.sending = append(s.log.sending, sending{r, s.later(s.Late) + 1, false})
	}
}

// append moves reports that have come so far into the log, and acknowledges them.
func (s *sim) append() {
	rest := s.log.sending[:0]
	for _, r := range s.log.sending {
		if r.appends > s.ms {
			rest = append(rest, r)
			continue
		}
		arrives := s.ms + s.delay(s.UplinkMin/2, s.UplinkMax/2)
		if n := len(s.log.usage); n > 0 {
			arrives = max(arrives, s.log.usage[n-1].arrives)
		}
		s.log.usage = append(s.log.usage, usage{Logged[Report]{r.report, s.stamp()}, arrives})
		if n := s.nodes[r.report.Pod]; r.acked && n.pod != nil && n.pod.run == r.report.Run {
			n.pod.Acknowledge(r.report.Number)
		}
	}
	s.log.sending = rest
}

// publish appends a batch, and delivers it to every pod in the log's order.
func (s *sim) publish(b Batch) {
	s.res.Grants += len(b.Grants)
	s.log.batches = append(s.log.batches, Logged[Batch]{&b, s.stamp()})
	for _, n := range s.nodes {
		at := max(s.ms+s.delay(s.DownlinkMin, s.DownlinkMax), n.inboxEnd, n.cut)
		n.inboxEnd = at
		n.inbox = append(n.inbox, delivery{at, &b})
		if s.chance(s.Redeliver) {
			n.again = append(n.again, delivery{at + s.rng.Int64N(s.Late.Milliseconds()+1), &b})
		}
	}
}
