package quota

import "time"

// Standing is what the next check of a counter goes by, and how far it may go: for people, and for those who hold pods
// to the bound of docs/design/bound.md. Units are for a request of the mean cost.
type Standing struct {
	// Basis of the next answer. Without a fresh header (BasisFallback, BasisFailureMode) nothing else is said.
	Basis Basis
	// Epoch, Sequence and Watermark are those of the header that the decision stands on: its record's own or, if Renewed,
	// the newest one that renews it. A cold counter stands on none: its watermark is -1.
	Epoch     int64
	Sequence  uint64
	Watermark int64
	Renewed   bool
	// Age since that header's receipt; Lead is what is added to it (delta0).
	Age, Lead time.Duration

	Left float64 // X: what may be left of the amount by now
	// Guessed is what of Left no owner has promised: the regrowth of a sliding window past the curve's second knot and, if
	// Renewed, all of it, since a renewed record's lines are those of when it was made.
	Guessed float64
	Share   float64 // s
	// Counted is u, the admitted units that the header does not include; of a cold counter, all in its own window.
	Counted float64
	// Most is what Counted may become by an answer now: Share*Left + Pace + Beyond + Rounding.
	Most     float64
	Pace     float64 // 0 or less: a paced pod stays below its share
	Beyond   float64 // overcommit, and what a sparse pod that is thinned may be ahead by
	Rounding float64 // a part of one request
	Paced    bool
	Thinned  bool // the pod expects less than a request: it is admitted by chance
}

// Standing says what the counter stands on. Like all of Counter's methods it is for the control goroutine.
func (c *Counter) Standing(now Time) Standing {
	var v view
	c.cell.read(c.fresh, &v)
	age, heard := c.fresh.Age(now)
	switch {
	case !heard || age > c.rule.staleAfter():
		if c.rule.Failure == FailLocalShare {
			return Standing{Basis: BasisFallback, Watermark: -1}
		}
		return Standing{Basis: BasisFailureMode, Watermark: -1}
	case c.decision == nil:
		return c.coldStanding(now, &v)
	}
	h := c.renewed()
	s := Standing{
		Basis: BasisDecision, Epoch: h.Epoch, Sequence: h.Sequence, Watermark: h.Watermark, Lead: time.Duration(v.lead),
		Renewed: h.Sequence != c.decision.header.Sequence, Share: v.s, Paced: v.has(flagPaced),
	}
	since := v.renew(now, c.fresh)
	s.Age, s.Left = time.Duration(since), v.curve(since+v.lead, true)
	s.Guessed = v.guessed(since+v.lead, s.Renewed)
	s.Counted = float64(int64(c.cell.Admitted() - v.inc))
	if v.reset != 0 && now >= v.reset {
		s.Counted, s.Left, s.Guessed = float64(c.cell.own(c.cell.ownNumber(now, &v))), v.m, 0
	}
	s.limit(&v, since)
	s.Most = s.Share*s.Left + s.Pace + s.Beyond + s.Rounding
	return s
}

func (v *view) guessed(age float64, renewed bool) float64 {
	known := v.r
	if _, h2 := knots(v.w); !renewed {
		known = v.curve(min(age, h2), true)
	}
	if v.has(flagBucket) || v.has(flagCalendar) {
		return 0
	}
	return max(v.curve(age, true)-known, 0)
}

// coldStanding: an even share of an untouched amount.
func (c *Counter) coldStanding(now Time, v *view) Standing {
	n, _ := c.fleet.Pods()
	s := Standing{Basis: BasisCold, Watermark: -1, Share: 1 / float64(n), Left: v.m}
	s.Counted = float64(c.cell.own(c.cell.ownNumber(now, v)))
	even := s.Share * v.m
	s.Most = even
	if !c.rule.strict(n) {
		s.Most = min(v.m, even+coldExtra)
		s.Beyond = s.Most - even
	}
	return s
}

// limit takes Most apart as ask.admits decides.
func (s *Standing) limit(v *view, since float64) {
	share := s.Share * s.Left
	switch {
	case s.Paced:
		since += v.tau0
		paced := s.Share * min(s.Left, v.g*since)
		s.Pace = paced - share
		s.round(v, v.di*since < v.mean, v.phi)
	case s.Left > v.lam && !v.has(flagStrict):
		s.Beyond = min(s.Left, share+min(v.beyond(s.Left), s.Left-v.lam)) - share
		s.round(v, false, v.phi*v.q)
	default:
		s.round(v, v.s*v.lam < v.mean, v.phi*v.q)
	}
}

// round: a request passes if phi of it fits, or, thinned, by chance while the pod is no more than thinBeyond ahead.
func (s *Standing) round(v *view, thinned bool, phi float64) {
	switch {
	case v.has(flagStrict):
	case thinned:
		s.Thinned = true
		s.Beyond = (1 + thinBeyond) * v.mean
	default:
		s.Rounding = (1 - phi) * v.mean
	}
}
