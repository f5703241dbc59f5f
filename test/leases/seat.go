package leases

import "time"

// seat is an owner in its process.
type seat struct {
	clock  clock
	epoch  uint64
	owner  *Owner // nil: not ready
	next   int    // of the usage log
	tick   int64
	frozen int64
	looked Time   // what the clock said before a stop; 0: nothing
	held   *Batch // granted, and not yet appended

	// Of one that took over: where its claim and its first header lie, and when it is ready.
	claim, header int
	stamp         time.Duration
	ready         int64
	// Of one that was replaced: it does not read from meets on, and is gone at gone.
	meets int
	gone  int64
}

func newSeat(s *sim, epoch uint64) *seat { return &seat{clock: s.newClock(), epoch: epoch, meets: -1} }

// move starts the moves that are due: the new owner claims, and its first header fences the old one's batches.
func (s *sim) move() {
	if len(s.Moves) == 0 || s.at() < s.Moves[0].At {
		return
	}
	m := s.Moves[0]
	s.Moves = s.Moves[1:]
	old := s.seats[len(s.seats)-1]
	old.meets, old.gone = len(s.log.usage), s.ms+m.Zombie.Milliseconds()
	o := newSeat(s, old.epoch+1)
	o.claim, o.stamp, o.next = len(s.log.usage), s.stamp(), len(s.log.usage)
	o.header, o.ready = len(s.log.batches), s.ms+m.Gap.Milliseconds()
	if s.omits(Forgetful) { // waits a lease out
		o.ready = max(o.ready, s.ms+s.own(s.leaseReal(), 0).Milliseconds())
	}
	s.publish(Batch{ID: GrantID{Epoch: o.epoch}})
	s.seats = append(s.seats, o)
}

func (o *seat) step(s *sim) {
	if o.meets >= 0 && s.ms >= o.gone || s.ms < o.frozen || s.ms < o.ready {
		return
	}
	if o.held != nil {
		s.publish(*o.held)
		o.held = nil
	}
	if o.stopped(s, Timed) {
		o.looked = o.clock.at(s.ms)
		return
	}
	o.read(s)
	if s.ms < o.tick || o.stopped(s, Idle) {
		return
	}
	o.tick = s.ms + s.Tick.Milliseconds()
	b := o.owner.Tick(s.rng.Float64())
	if o.stopped(s, Granted) {
		o.held = &b
	} else if len(b.Grants) > 0 {
		s.publish(b)
	}
}

// read takes in the usage log as far as it has arrived.
func (o *seat) read(s *sim) {
	now := o.clock.at(s.ms)
	if s.omits(StaleClock) && o.looked != 0 {
		now, o.looked = o.looked, 0
	}
	if o.owner == nil {
		o.takeOver(s, now)
	}
	o.owner.Advance(now)
	for o.next != o.meets && o.next < len(s.log.usage) && s.log.usage[o.next].arrives <= s.ms {
		o.owner.Ingest(s.log.usage[o.next].Message, 0)
		o.next++
	}
}

func (o *seat) takeOver(s *sim, now Time) {
	o.owner = NewOwner(&s.Rules, s.Pods, o.epoch, now)
	reports := make([]Logged[Report], 0, o.claim)
	for _, u := range s.log.usage[:o.claim] {
		reports = append(reports, u.Logged)
	}
	o.owner.Restore(s.log.batches[:o.header], reports, o.stamp)
}

func (o *seat) stopped(s *sim, at OwnerStage) bool {
	for i, stop := range s.OwnerStops {
		if stop.Stage == at && s.at() >= stop.From {
			s.OwnerStops = append(s.OwnerStops[:i:i], s.OwnerStops[i+1:]...)
			o.frozen = s.ms + stop.For.Milliseconds()
			return true
		}
	}
	return false
}
