package partition

import "github.com/weirproxy/weir/internal/quota"

// over is what was seen of one counter since it was last asked for.
type over struct {
	fullest float64 // the most held, as part of the amount
	units   float64 // admitted beyond the amount
	seconds float64 // for which it held more
}

// meter measures how far one counter goes beyond its amount. Times must not go back.
type meter interface {
	// add takes in n units that were admitted evenly within [from, to]; content is what the owner now knows of.
	add(from, to, now quota.Millis, n, content float64)
	// setAmount changes the amount: the content that is there is not over the new one.
	setAmount(amount, content float64, now quota.Millis)
	// settle moves to now and returns what was seen since the last time.
	settle(now quota.Millis, content float64) over
	// done says that nothing is left to see of what was added.
	done() bool
}

// excess of content over amount, units. Less than half a unit comes of spreading a report's units over its span.
func excess(content, amount float64) float64 {
	if x := content - amount; x >= 0.5 {
		return x
	}
	return 0
}

// note takes in that a counter holds so much.
func (o *over) note(content, amount float64) {
	full := content / amount
	if excess(content, amount) == 0 {
		full = min(full, 1)
	}
	o.fullest = max(o.fullest, full)
}

// level is the meter of what does not slide: a bucket's debt, a period's count. Units over are those that an exact
// limiter would have refused; what is left of the content without them is what it would hold.
type level struct {
	amount  float64
	floor   float64 // held when the amount was changed, and since
	refused float64 // by an exact limiter, and still in the content
	is      bool    // over
	at      quota.Millis
	seen    over
}

func (l *level) add(_, _, now quota.Millis, _, content float64) { l.take(content, now) }

func (l *level) take(content float64, now quota.Millis) {
	l.spend(now)
	l.refused = min(l.refused, content)
	exact := content - l.refused
	l.floor = min(l.floor, exact)
	amount := max(l.amount, l.floor)
	x := excess(exact, amount)
	l.refused += x
	l.seen.units += x
	l.seen.note(content, amount)
	l.is = excess(content, amount) > 0
}

// spend counts the time until now.
func (l *level) spend(now quota.Millis) {
	if l.is {
		l.seen.seconds += float64(max(now-l.at, 0)) / 1000
	}
	l.at = max(l.at, now)
}

func (l *level) setAmount(amount, content float64, now quota.Millis) {
	l.spend(now)
	l.amount, l.floor, l.refused, l.is = amount, content, 0, false
}

func (l *level) settle(now quota.Millis, content float64) over {
	l.take(content, now)
	o := l.seen
	l.seen = over{}
	return o
}

func (l *level) done() bool { return !l.is }
