package scenario

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/api/v1alpha1"
)

const (
	maxRate       = 1e9 // requests/s of a source
	maxBatch      = 100_000
	maxClients    = 1_000_000
	maxSkew       = 10
	maxSourcePods = 1_000_000 // of all sources together
	maxHeaders    = 64
	maxText       = 8192
)

func (c *checker) traffic(f *file) {
	switch {
	case !c.required("traffic", "give at least one source, such as {pods: all, requestsPerSecond: [{at: 0s, value: 100}]}"):
		return
	case len(f.Traffic) == 0:
		c.fail("traffic", "is empty", "give at least one source")
	case len(f.Traffic) > maxSources:
		c.fail("traffic", fmt.Sprintf("has %d sources, at most %d", len(f.Traffic), maxSources), "say it with fewer")
		return
	}
	pods, requests := 0, 0.0
	for i := range f.Traffic {
		field, s := at("traffic", i), &f.Traffic[i]
		before := len(c.errs)
		c.source(field, s, f)
		pods += podCount(s, f)
		if len(c.errs) == before {
			requests += s.Requests(f.Duration)
		}
	}
	if pods > maxSourcePods {
		c.fail("traffic", fmt.Sprintf("has %d pods in all sources together, at most %d", pods, maxSourcePods), "use fewer sources")
	}
	if requests > maxRequests {
		c.fail("traffic", fmt.Sprintf("offers %.3g requests a run, at most %.0f", requests, maxRequests), "lower the rates, or shorten duration")
	}
}

// podCount is how many pods a source has; nil is all.
func podCount(s *Source, f *file) int {
	if s.Pods == nil {
		return min(maxPods(f.Pods, f.Faults), maxPodCount)
	}
	return len(s.Pods)
}

func (c *checker) source(field string, s *Source, f *file) {
	if c.missed(field) {
		return
	}
	c.sourcePods(field, s, f)
	c.weights(field, s, podCount(s, f))
	c.steps(field, s)
	c.rounds(field, s, f.Duration)
	if c.has(field + ".batch") {
		within(c, field+".batch", s.Batch, 1, maxBatch)
	}
	c.request(field, s, f)
}

func (c *checker) sourcePods(field string, s *Source, f *file) {
	field += ".pods"
	if !c.required(field, "want all or a list of pods, such as [0, 1]") || s.Pods == nil {
		return
	}
	if len(s.Pods) == 0 {
		c.fail(field, "is empty", "want all or a list of pods")
	}
	most := maxPods(f.Pods, f.Faults) - 1
	seen := make(map[int]bool)
	for i, pod := range s.Pods {
		if !c.missed("pods") && !c.missed("faults") && c.has("pods") && (pod < 0 || pod > most) {
			c.fail(at(field, i), fmt.Sprintf("is %d", pod), fmt.Sprintf("want 0 to %d: the pods that there are", most))
		}
		if seen[pod] {
			c.fail(at(field, i), fmt.Sprintf("pod %d is listed twice", pod), "remove one; weights say which pod gets more")
		}
		seen[pod] = true
	}
}

func (c *checker) weights(field string, s *Source, pods int) {
	within(c, field+".skew", s.Skew, 0, maxSkew)
	for _, name := range []string{".skew", ".weights"} {
		if c.has(field+".hop") && c.has(field+name) {
			c.fail(field+name, "is not for a source with hop", "remove one of them: one pod at a time carries it all")
		}
	}
	if field += ".weights"; !c.has(field) || c.missed(field) {
		return
	}
	if c.has(strings.TrimSuffix(field, "weights") + "skew") {
		c.fail(field, "is given beside skew", "keep one of them")
	}
	if len(s.Weights) != pods && !c.missed("pods") {
		c.fail(field, fmt.Sprintf("has %d items for %d pods", len(s.Weights), pods), "give one for each, in the order listed")
	}
	sum := 0.0
	for i, w := range s.Weights {
		within(c, at(field, i), w, 0, 1e9)
		sum += w
	}
	if sum <= 0 {
		c.fail(field, "are all 0", "give one pod some weight")
	}
}

func (c *checker) steps(field string, s *Source) {
	field += ".requestsPerSecond"
	if !c.required(field, "give the rate over time, such as [{at: 0s, value: 100}]") || c.missed(field) {
		return
	}
	if len(s.Rate) == 0 {
		c.fail(field, "is empty", "want at least one step, such as {at: 0s, value: 100}")
	}
	for i, step := range s.Rate {
		path := at(field, i)
		c.required(path+".at", "say from when on the rate holds, such as 0s")
		if c.required(path+".value", "give the rate, requests/s") {
			within(c, path+".value", step.Value, 0, maxRate)
		}
		switch {
		case i == 0 && step.At != 0:
			c.fail(path+".at", "is "+short(step.At), "begin with {at: 0s, value: 0}, or another rate")
		case i > 0 && step.At <= s.Rate[i-1].At && c.has(path+".at"):
			c.fail(path+".at", "is "+short(step.At)+", not after the step before it", "write the steps in order")
		}
	}
}

// rounds checks what happens again and again.
func (c *checker) rounds(field string, s *Source, run time.Duration) {
	if repeat := field + ".repeat"; c.has(repeat) && c.span(repeat, s.Repeat, minPeriod, maxDuration) {
		if last := len(s.Rate) - 1; last >= 0 && s.Rate[last].At >= s.Repeat {
			c.fail(repeat, "is "+short(s.Repeat)+", not after the last step, "+short(s.Rate[last].At), "lengthen it, or remove steps")
		}
		c.atMostTimes(repeat, run, s.Repeat, len(s.Rate))
	}
	if hop := field + ".hop"; c.has(hop) && c.span(hop, s.Hop, minPeriod, maxDuration) {
		c.atMostTimes(hop, run, s.Hop, 1)
	}
}

// request checks what a source's requests are.
func (c *checker) request(field string, s *Source, f *file) {
	if f.Rate != nil {
		for _, name := range []string{"client", "clients", "clientSkew", "method", "path", "headers", "cost", "priority"} {
			if c.has(field + "." + name) {
				c.fail(field+"."+name, "is for scenarios with a policy only", "remove it, or give a policy instead of rate")
			}
		}
		return
	}
	c.client(field, s, f.Policy)
	c.httpTexts(field, s)
	c.cost(field+".cost", s, f.Policy)
}

func (c *checker) client(field string, s *Source, p *v1alpha1.QuotaPolicySpec) {
	within(c, field+".clients", s.Clients, 0, maxClients)
	within(c, field+".clientSkew", s.ClientSkew, 0, maxSkew)
	if s.ClientSkew != 0 && s.Clients == 0 {
		c.fail(field+".clientSkew", "is given without clients", "say how many there are, or remove it")
	}
	c.text(field+".client", s.Client, maxText)
	if s.Client == "" && s.Clients == 0 || p == nil {
		return
	}
	name := field + ".client"
	if s.Client == "" {
		name = field + ".clients"
	}
	if len(p.Client) == 0 {
		c.fail(name, "is given, but the policy's client names no source", "say in the policy how to tell who is calling, or remove it")
		return
	}
	if _, err := netip.ParseAddr(s.Client); err != nil && s.Client != "" && p.Client[0].Source == v1alpha1.SourceRemoteAddress {
		c.fail(name, fmt.Sprintf("%q is no address", clip(s.Client)), "the policy's first source is RemoteAddress: want one such as 10.1.2.3")
	}
}

func (c *checker) httpTexts(field string, s *Source) {
	if s.Method != "" && !isToken(s.Method) {
		c.fail(field+".method", fmt.Sprintf("%q is no method", clip(s.Method)), "want one such as GET")
	}
	c.text(field+".path", s.Path, maxText)
	if s.Path != "" && s.Path[0] != '/' && s.Path != "*" {
		c.fail(field+".path", fmt.Sprintf("%q does not begin with /", clip(s.Path)), "want one such as /orders/1")
	}
	c.text(field+".priority", s.Priority, 100)
	if len(s.Headers) > maxHeaders {
		c.fail(field+".headers", fmt.Sprintf("has %d items, at most %d", len(s.Headers), maxHeaders), "remove some")
		return
	}
	c.headers(field+".headers", s.Headers)
}

func (c *checker) headers(field string, headers map[string]string) {
	lower := make(map[string]string)
	for _, name := range sortedKeys(headers) {
		path := join(field, clip(name))
		if !isToken(name) {
			c.fail(path, fmt.Sprintf("%q is no header's name", clip(name)), "use letters, digits and '-'")
		}
		if other, again := lower[strings.ToLower(name)]; again {
			c.fail(path, "is the same header as "+clip(other), "keep one of them: names are the same in any case")
		}
		lower[strings.ToLower(name)] = name
		c.text(path, headers[name], maxText)
	}
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// isToken reports whether s is an HTTP token: a method or a header's name.
func isToken(s string) bool {
	for i := range len(s) {
		b := s[i]
		alnum := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", b) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

func (c *checker) cost(field string, s *Source, p *v1alpha1.QuotaPolicySpec) {
	if s.Cost == 0 || p == nil {
		return
	}
	within(c, field, s.Cost, 0, 1e15)
	if !slices.ContainsFunc(p.Limits, func(l v1alpha1.Limit) bool { return l.Cost != nil && l.Cost.Header != "" }) {
		c.fail(field, "is given, but no limit of the policy reads a cost from a header", "give one cost: {header: x-cost, max: 100}, or remove it")
	}
}

// fillSource puts the pods, their weights and the clients' name in place.
func fillSource(s *Source, pods int, p *v1alpha1.QuotaPolicySpec) {
	if s.Pods == nil {
		s.Pods = upTo(pods)
	}
	if s.Weights == nil {
		s.Weights = Zipf(len(s.Pods), s.Skew)
	}
	s.Batch = max(s.Batch, 1)
	if s.Clients > 0 && s.Client == "" {
		s.Client = "client"
		if p.Client[0].Source == v1alpha1.SourceRemoteAddress {
			s.Client = "10.0.0.0"
		}
	}
	if s.Headers != nil {
		lower := make(map[string]string, len(s.Headers))
		for name, value := range s.Headers {
			lower[strings.ToLower(name)] = value
		}
		s.Headers = lower
	}
}

// upTo is 0 to n-1.
func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
