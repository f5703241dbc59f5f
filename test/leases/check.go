package leases

// check is one request under way at a pod.
type check struct {
	stage Stage
	lease *lease
	read  Time  // what the clock said
	stamp int64 // when it was read, real ms
	wake  int64 // of a stopped one
}

func (n *node) firstStage(s *sim) Stage {
	if s.omits(ClockFirst) {
		return Reading
	}
	return Picking
}

// resume goes on with the checks that were stopped.
func (n *node) resume(s *sim) {
	checks := n.checks
	n.checks = nil
	for _, c := range checks {
		if c.wake > s.ms || s.ms < n.frozen {
			n.checks = append(n.checks, c)
			continue
		}
		n.advance(s, c)
	}
}

// serve takes a check from where it is to its answer, or to where it is stopped.
func (n *node) serve(s *sim, c *check) {
	if !n.stopped(s, c.stage, c) {
		n.advance(s, c)
	}
}

// advance does what c's stage is named after, and goes on. A refused check ends.
func (n *node) advance(s *sim, c *check) {
	now := n.clock.at(s.ms)
	switch c.stage {
	case Picking:
		if s.omits(ClockFirst) {
			now = c.read
		}
		if c.lease = n.pod.pick(now); c.lease == nil {
			return
		}
		c.stage = Reading
		if s.omits(ClockFirst) {
			c.stage = Taking
		}
	case Reading:
		c.read, c.stamp, c.stage = now, s.ms, Taking
		if s.omits(ClockFirst) {
			c.stage = Picking
		} else if now >= c.lease.until {
			c.stage = Picking
		}
	case Taking:
		if !n.pod.take(c.lease) {
			c.stage = n.firstStage(s)
			break
		}
		s.res.Stamps[c.stamp]++
		c.stage = Answering
	case Answering:
		c.lease.answered++
		s.res.Answers[s.ms]++
		return
	}
	n.serve(s, c)
}

// stopped stops the pod, or c, if a stop is due at the stage.
func (n *node) stopped(s *sim, at Stage, c *check) bool {
	for i, stop := range n.stops {
		if stop.Stage != at || s.at() < stop.From {
			continue
		}
		n.stops = append(n.stops[:i:i], n.stops[i+1:]...)
		end := s.ms + max(stop.For.Milliseconds(), 1)
		if stop.Process || c == nil {
			n.frozen = max(n.frozen, end)
		}
		if c != nil {
			c.wake = end
			n.checks = append(n.checks, c)
		}
		return true
	}
	return false
}
