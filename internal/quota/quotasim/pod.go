package quotasim

import (
	"time"

	"github.com/weirproxy/weir/internal/quota"
)

// uplink is a report on its way to the log.
type uplink struct {
	appends int64 // when the log has it, and the pod the acknowledgement
	arrives int64 // when its owner has it
	pod     int
	entries [2]quota.Entry
	n       int
	lost    bool
	twice   bool
}

// batch is one tick's message on its way to a pod.
type batch struct {
	arrives int64
	header  quota.Header
	record  *quota.Record
}

type pod struct {
	index   int
	cell    quota.Cell
	counter quota.Counter
	fresh   quota.Fresh
	fleet   quota.Fleet
	takes   [1]quota.Take
	out     [1]quota.Outcome
	rnd     quota.Rand
	phase   int64
	down    []batch
	lastUp  int64
}

func newPod(s *sim, i int) *pod {
	p := &pod{index: i, rnd: quota.NewRand(s.rng.Uint64()), phase: s.rng.Int64N(s.Flush.Milliseconds())}
	p.fresh.SetLead(s.Lead)
	p.fleet.Set(s.Believed)
	p.counter.Init(&p.cell, &s.Rule, &p.fresh, &p.fleet, 1, start)
	p.takes[0] = quota.Take{
		Cell: &p.cell, Rule: &s.Rule, Fresh: &p.fresh, Fleet: &p.fleet, Cost: s.Cost, Enforced: true,
	}
	p.fresh.Observe(quota.Header{Watermark: -1, OwnerTime: epoch, Received: start, Flush: s.Flush, Tick: s.Tick})
	return p
}

func (p *pod) setRule(r *quota.Rule) {
	p.counter.SetRule(r, p.counter.Cell().LastUse())
	p.takes[0].Rule = r
}

func (p *pod) check(s *sim) int {
	if quota.Decide(s.now(), p.takes[:], &p.rnd, p.out[:]).OK {
		return int(s.Cost)
	}
	return 0
}

func (p *pod) receive(s *sim) {
	for len(p.down) > 0 && p.down[0].arrives <= s.ms {
		b := p.down[0]
		p.down = p.down[1:]
		b.header.Received = s.now()
		p.fresh.Observe(b.header)
		if b.record != nil {
			p.counter.Apply(b.header, *b.record, s.now(), &p.rnd)
		} else {
			p.counter.Include(s.now(), &p.rnd)
		}
	}
}

func (p *pod) flush(s *sim) {
	due := (s.ms+p.phase)%s.Flush.Milliseconds() == 0
	urgent := !due && p.counter.Urgent(s.now())
	if !due && !urgent {
		return
	}
	entries, n := p.counter.Flush(s.now(), s.Flush, false)
	if n == 0 {
		return
	}
	s.res.Reports++
	if urgent {
		s.res.Urgent++
	}
	appends := max(s.ms+s.delay(s.UplinkMin/2, s.UplinkMax/2), p.lastUp)
	read := s.UplinkMin/2 + time.Duration(s.rng.Float64()*float64(s.UplinkMax-s.UplinkMin)/2)
	p.lastUp = appends
	s.up = append(s.up, uplink{
		appends: appends, arrives: appends + read.Milliseconds(), pod: p.index, entries: entries, n: n,
		lost: s.rng.Float64() < s.UsageLoss, twice: s.rng.Float64() < s.UsageDuplicate,
	})
}

// append moves reports that have come so far into the log, and acknowledges them.
func (s *sim) append() {
	rest := s.up[:0]
	for _, u := range s.up {
		switch {
		case u.appends > s.ms:
			rest = append(rest, u)
		case u.lost:
			s.pods[u.pod].counter.Lost()
		default:
			for range 1 + b2i(u.twice) {
				s.owner.backlog = append(s.owner.backlog, logged{u, s.offset, s.date()})
				s.offset++
			}
			s.pods[u.pod].counter.Acknowledge(s.offset-1, s.date(), s.now())
		}
	}
	s.up = rest
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

type logged struct {
	u      uplink
	offset int64
	at     quota.Millis
}

// owner is the aggregator.
type owner struct {
	total     *quota.Total
	moment    quota.Moment
	watermark int64
	sequence  uint64
	urgent    bool
	next      int64
	backlog   []logged
}

func (o *owner) down(s *sim) bool { return s.at() >= s.Down[0] && s.at() < s.Down[1] }

// consume reads the log, in its order, as far as it has arrived.
func (o *owner) consume(s *sim) {
	if o.down(s) {
		return
	}
	for len(o.backlog) > 0 && o.backlog[0].u.arrives <= s.ms {
		l := o.backlog[0]
		o.backlog = o.backlog[1:]
		for i := range l.u.n {
			e := &l.u.entries[i]
			split := quota.Whole
			if l.u.n == 2 {
				split = quota.EndsAtReset + quota.Split(i)
			}
			_, urgent := o.total.Ingest(&quota.Usage{
				Pod: uint64(l.u.pod), Epoch: 1, Made: e.Made, Cumulative: e.Cumulative, Base: e.Base,
				Demand: e.Demand, MeanCost: e.MeanCost, Burst: e.Burst, Span: e.Span, Age: e.Age,
				Lead: s.Lead, Appended: l.at, Offset: l.offset, Split: split,
			}, true)
			o.urgent = o.urgent || urgent
		}
		o.watermark = l.offset
	}
}

func (o *owner) tick(s *sim) {
	if o.down(s) || s.ms < o.next && !o.urgent {
		return
	}
	o.next, o.urgent = s.ms+s.Tick.Milliseconds(), false
	o.sequence++
	o.moment.Now, o.moment.Pods = s.date(), s.Believed
	o.moment.Flush, o.moment.Tick, o.moment.Uplink = s.Flush, s.Tick, quota.DefaultUplink
	r, v := o.total.Tick(&o.moment)
	h := quota.Header{
		Epoch: 1, Sequence: o.sequence, Watermark: o.watermark, OwnerTime: s.date(),
		Flush: s.Flush, Tick: s.Tick,
	}
	var record *quota.Record
	if v.Send || s.Every {
		o.total.Sent(&r)
		s.res.Records++
		record = &r
	}
	for _, p := range s.pods {
		if s.rng.Float64() < s.DecisionLoss {
			continue
		}
		arrives := s.ms + s.delay(s.DownlinkMin, s.DownlinkMax)
		if n := len(p.down); n > 0 {
			arrives = max(arrives, p.down[n-1].arrives)
		}
		p.down = append(p.down, batch{arrives, h, record})
	}
}
