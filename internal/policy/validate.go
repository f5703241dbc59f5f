package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// Bounds of a document, so that a policy cannot make checks slow or memory large.
const (
	maxTargets         = 16
	maxSources         = 16
	maxLimits          = 64
	maxCounters        = 8
	maxRates           = 8
	maxOverrides       = 1000
	maxOverrideClients = 100
	maxConditions      = 64
	maxHeaderName      = 128
	maxValue           = 256 // wirev1.MaxPlainValue
	maxPattern         = 1024
	maxTrustedHops     = 16
	maxAmount          = 1_000_000_000_000_000 // counts stay exact in a float64
)

// Validate returns everything wrong with a document, nil if nothing is.
func Validate(doc *v1alpha1.QuotaPolicy) Errors {
	c := &checker{}
	c.document(doc)
	return c.errs
}

func (c *checker) document(doc *v1alpha1.QuotaPolicy) {
	if doc.APIVersion != v1alpha1.APIVersion {
		c.fail("apiVersion", fmt.Sprintf("is %q", clip(doc.APIVersion)), "this program knows "+v1alpha1.APIVersion)
	}
	if doc.Kind != v1alpha1.Kind {
		c.fail("kind", fmt.Sprintf("is %q", clip(doc.Kind)), "want "+v1alpha1.Kind)
	}
	if c.required("metadata.name", doc.Metadata.Name, "name the policy") && !isName(doc.Metadata.Name) {
		c.fail("metadata.name", fmt.Sprintf("%q is no name", clip(doc.Metadata.Name)),
			"use lower-case letters, digits, '-' and '.', at most 253")
	}
	if ns := doc.Metadata.Namespace; ns != "" && !isLabel(ns) {
		c.fail("metadata.namespace", fmt.Sprintf("%q is no namespace", clip(ns)), "use lower-case letters, digits and '-', at most 63")
	}
	c.spec(&doc.Spec)
}

func (c *checker) spec(s *v1alpha1.QuotaPolicySpec) {
	c.targets(s.TargetRefs)
	c.client(s.Client)
	if s.Exclude != nil {
		for i, x := range *s.Exclude {
			oneOf(c, at("spec.exclude", i), x, false, v1alpha1.CORSPreflight, v1alpha1.HealthCheck)
		}
	}
	oneOf(c, "spec.unknownClients", s.UnknownClients, true, v1alpha1.UnknownShared, v1alpha1.UnknownRefuse, v1alpha1.UnknownExempt)
	c.failure(s.Failure)
	c.response(s.Response)
	if len(s.Limits) == 0 {
		c.fail("spec.limits", "is empty", "give at least one limit")
	}
	c.atMost("spec.limits", len(s.Limits), maxLimits)
	names := make(map[string]int)
	for i := range s.Limits {
		field := at("spec.limits", i)
		c.limit(field, &s.Limits[i], s)
		c.unique(field+".name", s.Limits[i].Name, i, "spec.limits", names)
	}
}

func at(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// unique says where a text was used before.
func (c *checker) unique(field, value string, i int, listField string, seen map[string]int) {
	if value == "" {
		return
	}
	if first, dup := seen[value]; dup {
		c.fail(field, fmt.Sprintf("%q is already that of %s", clip(value), at(listField, first)), "give each its own, or remove one")
		return
	}
	seen[value] = i
}

func (c *checker) targets(refs []v1alpha1.TargetRef) {
	if len(refs) == 0 {
		c.fail("spec.targetRefs", "is empty", "name what the policy attaches to, such as {kind: Service, name: orders}")
	}
	c.atMost("spec.targetRefs", len(refs), maxTargets)
	seen := make(map[string]int)
	for i, r := range refs {
		field := at("spec.targetRefs", i)
		if oneOf(c, field+".kind", r.Kind, false, "Service", "Deployment", "StatefulSet", "DaemonSet", "Gateway", "HTTPRoute", "GRPCRoute") {
			if group, _ := targetGroup(r.Kind); r.Group != "" && r.Group != group {
				c.fail(field+".group", fmt.Sprintf("%q is not the group of %s", clip(r.Group), r.Kind), fmt.Sprintf("want %q, or leave it out", group))
			}
		}
		if c.required(field+".name", r.Name, "name the object") && !isName(r.Name) {
			c.fail(field+".name", fmt.Sprintf("%q is no object's name", clip(r.Name)), "use lower-case letters, digits, '-' and '.'")
		}
		c.unique(field, r.Kind+"/"+r.Name, i, "spec.targetRefs", seen)
	}
}

func (c *checker) client(sources []v1alpha1.ClientSource) {
	c.atMost("spec.client", len(sources), maxSources)
	seen := make(map[string]int)
	for i := range sources {
		s := &sources[i]
		field := at("spec.client", i)
		if !oneOf(c, field+".source", s.Source, false,
			v1alpha1.SourcePrincipal, v1alpha1.SourceJWTClaim, v1alpha1.SourceHeader, v1alpha1.SourceRemoteAddress) {
			continue
		}
		c.sourceName(field+".name", s.Source, s.Name)
		c.headerOnly(field, s)
		c.addressOnly(field, s)
		c.unique(field, strings.TrimSuffix(string(s.Source)+" "+sourceName(s.Source, s.Name), " "), i, "spec.client", seen)
	}
}

func (c *checker) sourceName(field string, source v1alpha1.SourceKind, name string) {
	switch source {
	case v1alpha1.SourceHeader:
		c.headerName(field, name)
	case v1alpha1.SourceJWTClaim:
		if c.required(field, name, "name the claim, such as sub") && len(name) > maxValue {
			c.fail(field, fmt.Sprintf("has %d bytes, at most %d", len(name), maxValue), "")
		}
	default:
		if name != "" {
			c.fail(field, "a source of "+string(source)+" has no name", "remove it")
		}
	}
}

func (c *checker) headerName(field, name string) {
	if c.required(field, name, "name the header") && !isToken(name, maxHeaderName) {
		c.fail(field, fmt.Sprintf("%q is no header's name", clip(name)), fmt.Sprintf("use letters, digits and '-', at most %d", maxHeaderName))
	}
}

func (c *checker) headerOnly(field string, s *v1alpha1.ClientSource) {
	oneOf(c, field+".pick", s.Pick, true, v1alpha1.PickFirst, v1alpha1.PickLast, v1alpha1.PickAll)
	if s.Source == v1alpha1.SourceHeader {
		return
	}
	if s.Reveal {
		c.fail(field+".reveal", "is for sources of Header only", "remove it")
	}
	if s.Pick != "" {
		c.fail(field+".pick", "is for sources of Header only", "remove it")
	}
}

func (c *checker) addressOnly(field string, s *v1alpha1.ClientSource) {
	within(c, field+".ipv4Prefix", s.IPv4Prefix, 1, 32)
	within(c, field+".ipv6Prefix", s.IPv6Prefix, 1, 128)
	within(c, field+".trustedHops", &s.TrustedHops, 0, maxTrustedHops)
	if s.Source == v1alpha1.SourceRemoteAddress {
		return
	}
	const reason = "is for sources of RemoteAddress only"
	if s.IPv4Prefix != nil {
		c.fail(field+".ipv4Prefix", reason, "remove it")
	}
	if s.IPv6Prefix != nil {
		c.fail(field+".ipv6Prefix", reason, "remove it")
	}
	if s.TrustedHops != 0 {
		c.fail(field+".trustedHops", reason, "remove it")
	}
}

func (c *checker) failure(f *v1alpha1.Failure) {
	if f == nil {
		return
	}
	oneOf(c, "spec.failure.mode", f.Mode, true, v1alpha1.FailLocalShare, v1alpha1.FailAllow, v1alpha1.FailDeny)
	c.duration("spec.failure.staleAfter", f.StaleAfter, minStaleAfter, maxStaleAfter)
	within(c, "spec.failure.fallbackFloor", f.FallbackFloor, 0, 1)
}

func (c *checker) response(r *v1alpha1.Response) {
	if r == nil {
		return
	}
	oneOf(c, "spec.response.headers", r.Headers, true, v1alpha1.HeadersIETF, v1alpha1.HeadersXRateLimit, v1alpha1.HeadersNone)
	within(c, "spec.response.status", r.Status, 400, 599)
}

func (c *checker) limit(field string, l *v1alpha1.Limit, s *v1alpha1.QuotaPolicySpec) {
	if c.required(field+".name", l.Name, "name the limit; answers and metrics show it") && !isLabel(l.Name) {
		c.fail(field+".name", fmt.Sprintf("%q is no limit's name", clip(l.Name)), "use lower-case letters, digits and '-', at most 63")
	}
	if l.When != nil {
		c.when(field+".when", l.When)
	}
	c.counters(field+".counters", l, s)
	oneOf(c, field+".mode", l.Mode, true, v1alpha1.ModeEnforce, v1alpha1.ModeShadow, v1alpha1.ModeOff)
	oneOf(c, field+".accuracy", l.Accuracy, true, v1alpha1.AccuracyNormal, v1alpha1.AccuracyStrict)
	within(c, field+".enforcePercent", l.EnforcePercent, 0, 100)
	c.overcommit(field+".overcommit", l.Overcommit)
	c.rates(field+".rates", l.Rates)
	c.cost(field+".cost", l)
	c.overrides(field+".overrides", l, s)
}

func (c *checker) overcommit(field string, o v1alpha1.Overcommit) {
	if part, isNumber := o.Part(); isNumber {
		within(c, field, &part, 0, 1)
		return
	}
	if o != "" && o != v1alpha1.OvercommitLearned && o != v1alpha1.OvercommitNone {
		known := []v1alpha1.Overcommit{v1alpha1.OvercommitLearned, v1alpha1.OvercommitNone}
		c.fail(field, fmt.Sprintf("%q is not known", clip(string(o))), suggest(string(o), known)+"want Learned, None or a number from 0 to 1")
	}
}

func (c *checker) counters(field string, l *v1alpha1.Limit, s *v1alpha1.QuotaPolicySpec) {
	c.atMost(field, len(l.Counters), maxCounters)
	seen := make(map[string]int)
	for i, counter := range l.Counters {
		d, err := parseCounter(counter)
		if err != nil {
			known := []v1alpha1.Counter{v1alpha1.CounterClient, v1alpha1.CounterEndpoint, v1alpha1.CounterMethod, v1alpha1.CounterHost}
			c.fail(at(field, i), err.Error(), suggest(string(counter), known)+"want Client, Endpoint, Method, Host or Header:NAME")
			continue
		}
		c.unique(at(field, i), d.String(), i, field, seen)
	}
	if slices.Contains(l.Counters, v1alpha1.CounterClient) && len(s.Client) == 0 {
		c.fail(field, "counts by Client, but spec.client names no source", "say in spec.client how to tell who is calling")
	}
	if slices.Contains(l.Counters, v1alpha1.CounterEndpoint) && (l.When == nil || len(l.When.Paths) == 0) {
		c.fail(field, "counts by Endpoint, but `when` has no paths to tell endpoints apart", "list the paths, or count by Method")
	}
}
