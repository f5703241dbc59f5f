package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/api/v1alpha1"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
)

const (
	minStaleAfter = 200 * time.Millisecond // two idle ticks of an owner
	maxStaleAfter = time.Hour
	minSliding    = time.Second
	minBucket     = time.Millisecond
	maxWindow     = 744 * time.Hour // 31 days
)

func (c *checker) duration(field string, d *v1alpha1.Duration, low, high time.Duration) {
	switch {
	case d == nil:
	case d.Duration < low || d.Duration > high:
		c.fail(field, "is "+shortDuration(d.Duration), "want "+shortDuration(low)+" to "+shortDuration(high))
	case d.Duration%time.Millisecond != 0:
		c.fail(field, "is "+shortDuration(d.Duration), "want whole milliseconds")
	}
}

func (c *checker) rates(field string, rates []v1alpha1.Rate) {
	if len(rates) == 0 {
		c.fail(field, "is empty", "give at least one, such as {limit: 100, window: 1s}")
	}
	c.rateList(field, rates)
}

func (c *checker) rateList(field string, rates []v1alpha1.Rate) {
	c.atMost(field, len(rates), maxRates)
	seen := make(map[string]int)
	for i := range rates {
		c.rate(at(field, i), &rates[i])
		if key, ok := rateKey(&rates[i]); ok {
			c.unique(at(field, i), key, i, field, seen)
		}
	}
}

// rateKey is what tells a limit's rates apart, for people too.
func rateKey(r *v1alpha1.Rate) (string, bool) {
	if r.Algorithm == v1alpha1.Calendar {
		return fmt.Sprintf("Calendar %s %s", r.Period, zoneOf(r)), r.Period != ""
	}
	if r.Window == nil || r.Window.Duration <= 0 {
		return "", false
	}
	algorithm := r.Algorithm
	if algorithm == "" {
		algorithm = v1alpha1.SlidingWindow
	}
	return string(algorithm) + " " + shortDuration(r.Window.Duration), true
}

func (c *checker) rate(field string, r *v1alpha1.Rate) {
	if r.Limit == 0 {
		c.fail(field+".limit", "is missing or 0", "want 1 or more; remove the service's route to refuse everything")
	} else {
		within(c, field+".limit", &r.Limit, 1, maxAmount)
	}
	if !oneOf(c, field+".algorithm", r.Algorithm, true, v1alpha1.SlidingWindow, v1alpha1.TokenBucket, v1alpha1.Calendar) {
		return
	}
	if r.Algorithm == v1alpha1.Calendar {
		c.calendar(field, r)
	} else {
		c.windowed(field, r)
	}
	c.burst(field+".burst", r)
}

func (c *checker) calendar(field string, r *v1alpha1.Rate) {
	oneOf(c, field+".period", r.Period, false, v1alpha1.Hour, v1alpha1.Day, v1alpha1.Week, v1alpha1.Month, v1alpha1.Year)
	if r.Window != nil {
		c.fail(field+".window", "is not for Calendar", "remove it; period says when a Calendar rate starts anew")
	}
	if _, err := time.LoadLocation(zoneOf(r)); err != nil || r.TimeZone == "Local" || len(r.TimeZone) > 64 {
		c.fail(field+".timeZone", fmt.Sprintf("%q is no time zone", clip(r.TimeZone)), "want an IANA name such as Asia/Singapore")
	}
}

func (c *checker) windowed(field string, r *v1alpha1.Rate) {
	if r.Period != "" {
		c.fail(field+".period", "is for Calendar only", "set algorithm: Calendar, or give a window")
	}
	if r.TimeZone != "" {
		c.fail(field+".timeZone", "is for Calendar only", "set algorithm: Calendar, or remove it")
	}
	switch {
	case r.Window == nil && r.Period == "":
		c.fail(field+".window", "is missing", "give one, such as 1s")
	case r.Algorithm == v1alpha1.TokenBucket:
		c.duration(field+".window", r.Window, minBucket, maxWindow)
	default:
		c.duration(field+".window", r.Window, minSliding, maxWindow)
	}
}

func (c *checker) burst(field string, r *v1alpha1.Rate) {
	if r.Burst != nil && r.Algorithm != v1alpha1.TokenBucket {
		c.fail(field, "is for TokenBucket only", "set algorithm: TokenBucket, or remove it")
		return
	}
	within(c, field, r.Burst, 1, maxAmount)
}

// cost checks that every request can pass: none may charge more than the smallest limit or burst,
// overrides included.
func (c *checker) cost(field string, l *v1alpha1.Limit) {
	if l.Cost == nil {
		return
	}
	if l.Cost.Header != "" {
		c.headerName(field+".header", l.Cost.Header)
		if l.Cost.Max == nil {
			c.fail(field+".max", "is missing", "say what one request may charge at most")
		}
	}
	within(c, field+".default", l.Cost.Default, 0, maxAmount)
	within(c, field+".max", l.Cost.Max, 1, maxAmount)
	smallest := smallestAmount(l)
	for _, v := range []struct {
		name string
		cost int64
	}{{".max", or(l.Cost.Max, 1)}, {".default", or(l.Cost.Default, 1)}} {
		if smallest > 0 && v.cost > smallest {
			c.fail(field+v.name, fmt.Sprintf("is %d, above the smallest limit or burst, %d", v.cost, smallest),
				"such a request could never pass: lower it or raise the limit")
		}
	}
	if l.Cost.Max != nil && or(l.Cost.Default, 1) > *l.Cost.Max {
		c.fail(field+".default", "is above max", "lower it")
	}
}

func smallestAmount(l *v1alpha1.Limit) int64 {
	smallest := int64(0)
	note := func(rates []v1alpha1.Rate) {
		for i := range rates {
			if v := capacity(&rates[i]); v > 0 && (smallest == 0 || v < smallest) {
				smallest = v
			}
		}
	}
	note(l.Rates)
	for i := range l.Overrides {
		note(l.Overrides[i].Rates)
	}
	return smallest
}

// capacity is the most that one moment can charge.
func capacity(r *v1alpha1.Rate) int64 {
	if r.Algorithm == v1alpha1.TokenBucket {
		return or(r.Burst, r.Limit)
	}
	return r.Limit
}

func (c *checker) overrides(field string, l *v1alpha1.Limit, s *v1alpha1.QuotaPolicySpec) {
	if len(l.Overrides) == 0 {
		return
	}
	c.atMost(field, len(l.Overrides), maxOverrides)
	if !slices.Contains(l.Counters, v1alpha1.CounterClient) {
		c.fail(field, "need Client among the limit's counters", "add it to counters: an override is for some clients")
	}
	own := make(map[string]bool)
	for i := range l.Rates {
		if key, ok := rateKey(&l.Rates[i]); ok {
			own[key] = true
		}
	}
	for i := range l.Overrides {
		c.override(at(field, i), &l.Overrides[i], own, s)
	}
}

func (c *checker) override(field string, o *v1alpha1.Override, own map[string]bool, s *v1alpha1.QuotaPolicySpec) {
	switch {
	case o.Unlimited && len(o.Rates) > 0:
		c.fail(field, "has both rates and unlimited", "keep one of them")
	case !o.Unlimited && len(o.Rates) == 0:
		c.fail(field, "has neither rates nor unlimited", "give one of them")
	}
	c.rateList(field+".rates", o.Rates)
	for i := range o.Rates {
		if key, ok := rateKey(&o.Rates[i]); ok && !own[key] {
			c.fail(at(field+".rates", i), "the limit has no rate of "+key, "an override changes amounts only: add that rate to the limit, or use its algorithm and window")
		}
	}
	if len(o.Clients) == 0 {
		c.fail(field+".clients", "is empty", "name the clients that it concerns")
	}
	c.atMost(field+".clients", len(o.Clients), maxOverrideClients)
	for i := range o.Clients {
		c.overrideClient(at(field+".clients", i), &o.Clients[i], s)
	}
}

func (c *checker) overrideClient(field string, o *v1alpha1.OverrideClient, s *v1alpha1.QuotaPolicySpec) {
	if !oneOf(c, field+".source", o.Source, false,
		v1alpha1.SourcePrincipal, v1alpha1.SourceJWTClaim, v1alpha1.SourceHeader, v1alpha1.SourceRemoteAddress) {
		return
	}
	c.sourceName(field+".name", o.Source, o.Name)
	i := slices.IndexFunc(s.Client, func(x v1alpha1.ClientSource) bool {
		return x.Source == o.Source && sourceName(x.Source, x.Name) == sourceName(o.Source, o.Name)
	})
	if i < 0 {
		c.fail(field, strings.TrimSpace(string(o.Source)+" "+clip(o.Name))+" is not among spec.client", "add the source there, or use one that is")
		return
	}
	switch {
	case o.Value == "" && o.ValueHash == "":
		c.fail(field, "has neither value nor valueHash", "give one of them")
	case o.Value != "" && o.ValueHash != "":
		c.fail(field, "has both value and valueHash", "keep one of them")
	case o.Source == v1alpha1.SourceRemoteAddress:
		c.overridePrefix(field, o, &s.Client[i])
	case o.ValueHash != "":
		if !isSecretHash(o.ValueHash) {
			c.fail(field+".valueHash", "is no hash", fmt.Sprintf("want the %d hexadecimal digits that `weir hash` prints", wirev1.SecretSize))
		}
	case len(o.Value) > maxValue:
		c.fail(field+".value", fmt.Sprintf("has %d bytes, at most %d", len(o.Value), maxValue), "give its valueHash: `weir hash` prints it")
	}
}

func (c *checker) overridePrefix(field string, o *v1alpha1.OverrideClient, source *v1alpha1.ClientSource) {
	if o.ValueHash != "" {
		c.fail(field+".valueHash", "is not for RemoteAddress", "give the value: addresses are not hashed")
		return
	}
	p, err := parsePrefix(o.Value)
	if err != nil {
		c.fail(field+".value", clip(err.Error()), "want an address or a prefix such as 10.0.0.0/8")
		return
	}
	most := int(or(source.IPv4Prefix, 32))
	if p.Addr().Is6() {
		most = int(or(source.IPv6Prefix, 64))
	}
	if p.Bits() > most {
		c.fail(field+".value", fmt.Sprintf("%s is narrower than a client, /%d", p, most), "widen it, or lengthen the prefix in spec.client")
	}
}

func isSecretHash(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == wirev1.SecretSize
}
