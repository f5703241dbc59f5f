package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// kinds of faults.
func kinds() []Kind {
	return []Kind{
		AggregatorDown, StoreDown, BrokerDown, UsageLoss, UsageDuplicate, AckLoss, DecisionLoss, PodRestart, OwnerMoves,
		StoreLoses, TopicMadeAnew, LimitChange, PodsChange, PodsBelieved,
	}
}

// fieldsFor is which fields a kind needs and which it may have, beside kind.
func fieldsFor(k Kind) (needed, optional []string) {
	switch k {
	case AggregatorDown, StoreDown, BrokerDown:
		return []string{"at", "for"}, nil
	case UsageLoss, UsageDuplicate, AckLoss, DecisionLoss:
		return []string{"probability"}, nil
	case PodRestart:
		return []string{"every"}, []string{"graceful"}
	case OwnerMoves:
		return []string{"at"}, []string{"old", "for"}
	case StoreLoses:
		return []string{"at"}, []string{"last"}
	case TopicMadeAnew:
		return []string{"at"}, nil
	case LimitChange:
		return []string{"at", "limit"}, []string{"limitName"}
	case PodsChange, PodsBelieved:
		return []string{"at", "pods"}, nil
	default:
		return nil, nil
	}
}

func (c *checker) faults(f *file) {
	if len(f.Faults) > maxFaults {
		c.fail("faults", fmt.Sprintf("has %d items, at most %d", len(f.Faults), maxFaults), "say it with fewer")
		return
	}
	first := make(map[Kind]string)
	for i := range f.Faults {
		field, x := at("faults", i), &f.Faults[i]
		if !c.required(field+".kind", "want "+list(texts(kinds()))) || c.missed(field) || !oneOf(c, field+".kind", x.Kind, kinds()...) {
			continue
		}
		c.faultFields(field, x.Kind)
		c.faultTimes(field, x, f.Duration)
		c.faultAmounts(field, x, f.Policy)
		if earlier, again := first[x.Kind]; again && isLasting(x.Kind) {
			c.fail(field, fmt.Sprintf("is another %s, beside %s", x.Kind, earlier), "give one: it holds for the whole run")
		}
		first[x.Kind] = field
	}
}

// isLasting reports whether a kind holds all the time.
func isLasting(k Kind) bool {
	needed, _ := fieldsFor(k)
	return !slices.Contains(needed, "at")
}

func texts[S ~string](in []S) []string {
	out := make([]string, len(in))
	for i := range in {
		out[i] = string(in[i])
	}
	return out
}

// faultFields refuses what a kind does not have and asks for what it needs.
func (c *checker) faultFields(field string, k Kind) {
	needed, optional := fieldsFor(k)
	for _, name := range fieldNames(reflect.TypeFor[Fault]()) {
		path := field + "." + name
		switch {
		case slices.Contains(needed, name):
			c.required(path, string(k)+" needs it")
		case name == "kind" || slices.Contains(optional, name):
		case c.has(path):
			c.fail(path, "is not for "+string(k), "remove it: the kind has "+strings.Join(slices.Concat(needed, optional), ", "))
		}
	}
}

func (c *checker) faultTimes(field string, x *Fault, run time.Duration) {
	if c.missed("duration") || run <= 0 {
		return
	}
	if x.At < 0 || x.At >= run {
		c.fail(field+".at", "is "+short(x.At), "want 0s or more, and less than duration")
	}
	if c.has(field+".for") && (x.For <= 0 || x.At >= 0 && x.At < run && x.For > run-x.At) {
		c.fail(field+".for", "is "+short(x.For), "want more than 0s, and an end within duration")
	}
	if c.has(field + ".every") {
		if c.span(field+".every", x.Every, minPeriod, run) {
			c.atMostTimes(field+".every", run, x.Every, 1)
		}
	}
	if c.has(field+".last") && (x.Last < 0 || x.Last > x.At) {
		c.fail(field+".last", "is "+short(x.Last), "want 0s (everything) to at")
	}
	c.oldOwner(field, x)
}

func (c *checker) oldOwner(field string, x *Fault) {
	if c.has(field+".old") && !oneOf(c, field+".old", x.Old, OldLeaves, OldDies, OldStalls) || x.Kind != OwnerMoves {
		return
	}
	waits := x.Old == OldDies || x.Old == OldStalls
	switch {
	case waits && !c.has(field+".for"):
		c.fail(field+".for", "is missing", "say how long after at the new owner starts (Dies), or for how long the old one stalls (Stalls)")
	case !waits && c.has(field+".for"):
		c.fail(field+".for", "is for old: Dies and old: Stalls only", "remove it, or say which")
	}
}

func (c *checker) faultAmounts(field string, x *Fault, p *v1alpha1.QuotaPolicySpec) {
	within(c, field+".probability", x.Probability, 0, 1)
	switch x.Kind {
	case PodsChange:
		if c.has(field + ".pods") {
			within(c, field+".pods", x.Pods, 1, maxPodCount)
		}
	case PodsBelieved:
		within(c, field+".pods", x.Pods, 0, maxPodCount)
	case LimitChange:
		if p != nil {
			c.limitChange(field, x, p)
		}
	}
}

// limitChange holds the policy to the rules of policies with the limit changed, too.
func (c *checker) limitChange(field string, x *Fault, p *v1alpha1.QuotaPolicySpec) {
	i := slices.IndexFunc(p.Limits, func(l v1alpha1.Limit) bool { return l.Name == x.LimitName })
	switch {
	case c.has(field+".limitName") && i < 0:
		c.fail(field+".limitName", fmt.Sprintf("%q is no limit of the policy", clip(x.LimitName)), nearest(x.LimitName, limitNames(p))+"known here: "+strings.Join(limitNames(p), ", "))
		return
	case !c.has(field+".limitName") && len(p.Limits) > 1:
		c.fail(field+".limitName", "is missing", "want "+list(limitNames(p)))
		return
	case !c.has(field + ".limitName"):
		i = 0
	}
	if !c.has(field+".limit") || !within(c, field+".limit", x.Limit, 1, 1e15) {
		return
	}
	amount := int64(x.Limit)
	if float64(amount) != x.Limit {
		c.fail(field+".limit", fmt.Sprintf("is %v", x.Limit), "want a whole number")
		return
	}
	c.limitValid(field+".limit", p, i, amount)
}

// limitValid checks a limit with another amount, without the overrides, which it does not touch.
func (c *checker) limitValid(field string, p *v1alpha1.QuotaPolicySpec, i int, amount int64) {
	if i >= len(p.Limits) || len(p.Limits[i].Rates) == 0 {
		return
	}
	l := p.Limits[i]
	l.Overrides = nil
	one := v1alpha1.QuotaPolicySpec{TargetRefs: targetRefs(), Client: p.Client, Limits: []v1alpha1.Limit{l}}
	if len(validate(&one)) > 0 {
		return // which has been said
	}
	l.Rates = slices.Clone(l.Rates)
	l.Rates[0].Limit = amount
	one.Limits[0] = l
	for _, e := range validate(&one) {
		c.fail(field, "would make limit "+l.Name+" invalid: "+strings.TrimPrefix(e.Field, "spec.limits[0].")+" "+e.Reason, e.Remedy)
	}
}

func limitNames(p *v1alpha1.QuotaPolicySpec) []string {
	out := make([]string, len(p.Limits))
	for i := range p.Limits {
		out[i] = p.Limits[i].Name
	}
	return out
}
