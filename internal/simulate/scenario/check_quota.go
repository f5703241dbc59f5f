package scenario

import (
	"strings"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/internal/policy"
)

// The names of a scenario's target and policy, and of the limit that a rate stands for.
const (
	targetName = "scenario"
	rateLimit  = "rate"
)

// targetRefs is what a scenario's policy attaches to where it says nothing.
func targetRefs() []v1alpha1.TargetRef {
	return []v1alpha1.TargetRef{{Group: "apps", Kind: "Deployment", Name: targetName}}
}

// ofRate is the policy that a rate stands for.
func ofRate(r v1alpha1.Rate) *v1alpha1.QuotaPolicySpec {
	return &v1alpha1.QuotaPolicySpec{
		TargetRefs: targetRefs(),
		Limits:     []v1alpha1.Limit{{Name: rateLimit, Rates: []v1alpha1.Rate{r}}},
	}
}

// quota makes a file's policy of what it gives, and checks it as a policy is.
func (c *checker) quota(f *file) {
	switch {
	case c.has("rate") && c.has("policy"):
		c.fail("policy", "is given beside rate", "keep one of them")
	case c.has("rate"):
		if f.Rate == nil {
			return // it could not be read
		}
		f.Policy = ofRate(*f.Rate)
		c.failure(f.Policy, &f.Timing)
		c.valid(f.Policy, "")
	case f.Policy != nil:
		if !c.has("policy.targetRefs") {
			f.Policy.TargetRefs = targetRefs()
		}
		c.failure(f.Policy, &f.Timing)
		c.valid(f.Policy, "policy")
	case !c.has("policy"):
		c.fail("rate", "is missing", "give a rate, such as {limit: 1000, window: 1s}, or a policy")
	}
}

// failure makes the policy's failure and the timing say the same: the policy's where it says something.
func (c *checker) failure(p *v1alpha1.QuotaPolicySpec, t *Timing) {
	failure := v1alpha1.Failure{}
	if p.Failure != nil {
		failure = *p.Failure
	}
	p.Failure = &failure
	const remedy = "remove one of them, or make them equal"
	if own := failure.StaleAfter; own == nil {
		failure.StaleAfter = &v1alpha1.Duration{Duration: t.StaleAfter}
	} else {
		if c.has("timing.staleAfter") && own.Duration != t.StaleAfter {
			c.fail("timing.staleAfter", "is "+short(t.StaleAfter)+", but the policy's failure.staleAfter "+short(own.Duration), remedy)
		}
		t.StaleAfter = own.Duration
	}
	if own := failure.FallbackFloor; own == nil {
		floor := t.FallbackFloor
		failure.FallbackFloor = &floor
	} else {
		if c.has("timing.fallbackFloor") && *own != t.FallbackFloor {
			c.fail("timing.fallbackFloor", "is not the policy's failure.fallbackFloor", remedy)
		}
		t.FallbackFloor = *own
	}
}

// valid holds a policy to the rules of policies. root is the field that it stands in; "": one rate does, in rate.
func (c *checker) valid(p *v1alpha1.QuotaPolicySpec, root string) {
	for _, e := range validate(p) {
		c.fail(c.fieldOf(e.Field, root), inFile(e.Reason), inFile(e.Remedy))
	}
}

func validate(p *v1alpha1.QuotaPolicySpec) policy.Errors {
	return policy.Validate(&v1alpha1.QuotaPolicy{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind,
		Metadata: v1alpha1.Metadata{Name: targetName}, Spec: *p,
	})
}

// fieldOf is where a file says what a policy has in a field.
func (c *checker) fieldOf(field, root string) string {
	rest := strings.TrimPrefix(field, "spec")
	if failure, ok := strings.CutPrefix(rest, ".failure."); ok && !c.has("policy.failure."+failure) {
		return "timing." + failure
	}
	if root == "" {
		return "rate" + strings.TrimPrefix(rest, ".limits[0].rates[0]")
	}
	return root + rest
}

// inFile names a policy's fields as a scenario does.
func inFile(text string) string { return strings.ReplaceAll(text, "spec.", "policy.") }
