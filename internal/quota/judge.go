package quota

import "time"

const (
	// thinBeyond is how many requests a thinned pod may be beyond its share (`b` in the thinning branches).
	thinBeyond = 1
	// coldExtra, units: what a pod may admit beyond M/n of a counter that no record names.
	coldExtra = 2
	// renewMargin is the part of M by which the owner lets R move before it sends a record.
	renewMargin = 0.02
	// fixedBurst, units: the least overcommit of OvercommitFixed.
	fixedBurst = 4
)

// judge answers one rate, read-only.
func judge(now Time, t *Take, rnd *Rand, o *Outcome) {
	var v view
	t.Cell.read(t.Fresh, &v)
	*o = Outcome{bucket: t.Cell.ownNumber(now, &v)}
	age, heard := t.Fresh.Age(now)
	switch {
	case !heard || age > t.Rule.staleAfter():
		judgeStale(now, t, &v, rnd, o)
	case v.has(flagRecord):
		judgeRecord(now, t, &v, rnd, o)
	default:
		judgeCold(now, t, &v, o)
	}
	o.OK = o.OK || t.Cost == 0
}

// judgeCold admits while the pod's own window stays near its even share.
func judgeCold(now Time, t *Take, v *view, o *Outcome) {
	o.Basis = BasisCold
	n, _ := t.Fleet.Pods()
	own, c := float64(t.Cell.own(o.bucket)), float64(t.Cost)
	share := v.m / float64(n)
	if !t.Rule.strict(n) {
		share = min(v.m, max(share+coldExtra, c)) // c: or one dear request would never pass
	}
	o.OK = own+c <= share
	if t.Rule.Overcommit == OvercommitLearned && !t.Rule.strict(n) {
		o.excess = float64(t.Cell.Requests()-t.Cell.w[wFlushed].Load()+1)*c - v.m/float64(n)
	}
	v.whole(now, o, v.m-own, c)
	if !o.OK {
		o.RetryAfter = v.nextWindow(now)
	}
}

// judgeRecord is ALGORITHM 3.1.
func judgeRecord(now Time, t *Take, v *view, rnd *Rand, o *Outcome) {
	o.Basis = BasisDecision
	age := v.renew(now, t.Fresh)
	o.Age = time.Duration(now - v.at)
	u := float64(int64(t.Cell.Admitted() - v.inc))
	x := v.curve(age+v.lead, true)
	if v.reset != 0 && now >= v.reset { // the period is new, and the feed has not said so yet
		u, x = float64(t.Cell.own(o.bucket)), v.m
	}
	a := ask{u: u, c: float64(t.Cost), age: age}
	o.OK = a.admits(v, x, rnd, o)
	v.whole(now, o, x-u, a.c)
	if a.slack && v.has(flagLearned) {
		o.excess = float64(t.Cell.Offered()-v.incOffers) + a.c - v.s*x
	}
	if !o.OK {
		n, _ := t.Fleet.Pods()
		o.RetryAfter = a.wait(now, v, n)
	}
}

// renew takes the newest header for a record where it stands for one, and returns the decision's age, ns:
// by sending none the owner asserts that R moved less than the margin.
func (v *view) renew(now Time, f *Fresh) float64 {
	at := v.at
	if renewed := Time(f.renewed.Load()); renewed > at && at >= Time(f.since.Load()) {
		at, v.r = renewed, v.r-renewMargin*v.m
	}
	return max(float64(now-at), 0)
}

// ask is one request against one decision.
type ask struct {
	u, c, age float64
	slack     bool
	need      float64 // of the share, units
}

func (a *ask) admits(v *view, x float64, rnd *Rand, o *Outcome) bool {
	a.need = a.u + a.c
	if x <= 0 {
		return false
	}
	if v.has(flagPaced) {
		return a.admitsPaced(v, x, rnd)
	}
	share := v.s * x
	switch {
	case v.has(flagStrict):
		return a.u+a.c <= share
	case x > v.lam:
		a.slack = true
		share = min(x, share+min(v.beyond(x), x-v.lam))
	case v.s*v.lam < v.mean:
		return a.thinned(v, share, v.s*v.lam, rnd)
	}
	return a.u+v.phi*v.q*a.c <= share
}

func (a *ask) admitsPaced(v *view, x float64, rnd *Rand) bool {
	since := v.tau0 + a.age
	share := v.s * min(x, v.g*since)
	if v.has(flagStrict) {
		return a.u+a.c <= share
	}
	expected := v.di * since
	if expected < a.c {
		return a.thinned(v, share, expected, rnd)
	}
	return a.u+v.phi*a.c <= share
}

// thinned admits a pod that expects less than a request by chance, so that the fleet's sparse pods
// together take their share.
func (a *ask) thinned(v *view, share, expected float64, rnd *Rand) bool {
	return a.u+a.c-v.mean < share+thinBeyond*v.mean && rnd.Float64()*expected < share
}

// beyond is what the pod may take beyond its share while there is slack.
func (v *view) beyond(x float64) float64 {
	if v.has(flagFixed) {
		return max(v.over*x, fixedBurst)
	}
	return v.over
}

// wait is the soonest that the refused request could pass. A pod's share follows its demand, so a share
// below the even one does not make it later.
func (a *ask) wait(now Time, v *view, pods int) time.Duration {
	if v.blocked > now {
		return time.Duration(v.blocked - now)
	}
	if v.has(flagCalendar) {
		return v.nextWindow(now)
	}
	need := a.need / max(v.s, 1/float64(pods))
	until := v.reach(need) - v.lead - a.age
	if v.has(flagPaced) && v.g > 0 {
		until = max(until, min(need/v.g, v.w)-v.tau0-a.age)
	}
	return max(time.Duration(until), time.Millisecond)
}

// whole fills in what the answer says of the counter as a whole.
func (v *view) whole(now Time, o *Outcome, left, c float64) {
	if o.OK {
		left -= c
	}
	left = max(left, 0)
	o.Remaining = uint64(left)
	switch {
	case v.has(flagCalendar):
		o.Reset = v.nextWindow(now)
	case left >= v.m:
	case v.has(flagBucket) && v.lr > 0:
		o.Reset = time.Duration(min((v.m-left)/v.lr, longest))
	default:
		o.Reset = time.Duration(v.w)
	}
}

// nextWindow is when a fresh window begins: the reset of a Calendar counter, else W.
func (v *view) nextWindow(now Time) time.Duration {
	if v.has(flagCalendar) && v.reset > now {
		return time.Duration(v.reset - now)
	}
	return time.Duration(v.w)
}
