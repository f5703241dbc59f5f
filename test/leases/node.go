package leases

// waitingRequests bounds what waits for a stopped pod.
const waitingRequests = 100

// node is a pod in its process.
type node struct {
	index  int
	clock  clock
	pod    *Pod // nil: dead
	run    uint64
	back   int64 // ms at which a dead one starts; negative: never
	frozen int64 // ms until which nothing of it runs
	cut    int64 // ms until which it is cut off
	flush  int64

	inbox, again []delivery
	inboxEnd     int64
	checks       []*check // stopped
	waiting      int      // requests that came while it was frozen

	stops   []Stop
	crashes []Crash
	cuts    []Cut
}

type delivery struct {
	at    int64
	batch *Batch
}

func newNode(s *sim, i int) *node {
	n := &node{index: i, clock: s.newClock(), run: 1, flush: s.rng.Int64N(s.Flush.Milliseconds())}
	n.pod = NewPod(&s.Rules, i, 1, n.clock.at(0))
	n.stops = of(i, s.Stops, func(x Stop) int { return x.Pod })
	n.crashes = of(i, s.Crashes, func(x Crash) int { return x.Pod })
	n.cuts = of(i, s.Cuts, func(x Cut) int { return x.Pod })
	return n
}

// of are pod i's faults of one kind.
func of[T any](i int, all []T, pod func(T) int) (own []T) {
	for _, x := range all {
		if pod(x) == i {
			own = append(own, x)
		}
	}
	return own
}

func (n *node) step(s *sim) {
	arrivals := s.poisson(s.Load(n.index, s.at()) / 1000)
	s.res.Offered[s.ms] += arrivals
	n.fail(s)
	if n.pod == nil {
		return
	}
	if s.ms < n.frozen {
		n.waiting = min(n.waiting+arrivals, waitingRequests)
		return
	}
	// After a stop all that was due is due at once, in whatever order.
	todo := [...]func(*sim){n.receive, n.resume, n.report}
	if len(n.checks) > 0 {
		s.rng.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
	}
	for _, do := range todo {
		if s.ms >= n.frozen {
			do(s)
		}
	}
	arrivals += n.waiting
	n.waiting = 0
	for range arrivals {
		if s.ms < n.frozen {
			n.waiting++
			continue
		}
		n.pod.Offer()
		n.serve(s, &check{stage: n.firstStage(s)})
	}
}

// fail begins the faults that are due.
func (n *node) fail(s *sim) {
	if n.pod == nil && n.back >= 0 && s.ms >= n.back {
		n.run++
		n.pod = NewPod(&s.Rules, n.index, n.run, n.clock.at(s.ms))
	}
	if n.pod != nil && len(n.crashes) > 0 && s.at() >= n.crashes[0].At {
		n.pod, n.back = nil, -1
		if back := n.crashes[0].Back; back >= 0 {
			n.back = s.ms + back.Milliseconds()
		}
		n.checks, n.waiting, n.frozen, n.crashes = nil, 0, 0, n.crashes[1:]
	}
	if len(n.cuts) > 0 && s.at() >= n.cuts[0].From {
		n.cut, n.cuts = s.ms+n.cuts[0].For.Milliseconds(), n.cuts[1:]
	}
	if n.pod != nil {
		n.stopped(s, Anywhere, nil)
	}
}

func (n *node) receive(s *sim) {
	for len(n.inbox) > 0 && n.inbox[0].at <= s.ms {
		n.deliver(s, n.inbox[0])
		n.inbox = n.inbox[1:]
	}
	rest := n.again[:0]
	for _, d := range n.again {
		if d.at > s.ms {
			rest = append(rest, d)
		} else {
			n.deliver(s, d)
		}
	}
	n.again = rest
}

func (n *node) deliver(s *sim, d delivery) { n.pod.Receive(d.batch, n.clock.at(s.ms)) }

func (n *node) report(s *sim) {
	if s.ms < n.flush {
		return
	}
	n.flush += s.Flush.Milliseconds()
	for n.flush <= s.ms {
		n.flush += s.Flush.Milliseconds()
	}
	r := n.pod.Report(n.clock.at(s.ms))
	s.send(&r, s.ms < n.cut)
}
