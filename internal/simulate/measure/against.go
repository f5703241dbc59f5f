package measure

import (
	"fmt"
	"math"

	"github.com/weirproxy/weir/internal/simulate/scenario"
)

// Miss is a measure that does not hold its reference.
type Miss struct {
	Limit, Rate string
	// Measure as JSON names it.
	Measure string
	// Got is the mean over the runs, NaN where the measure does not apply.
	Got, Reference, Tolerance float64
	// Sd: the reference's deviation of a single run; NaN where it gives none.
	Sd float64
}

// String says which figure missed which bar.
func (m Miss) String() string {
	if math.IsNaN(m.Got) {
		return fmt.Sprintf("%s was not measured, but the reference gives %.4g", m.Measure, m.Reference)
	}
	why := "the larger of 2 and 25 %"
	if !math.IsNaN(m.Sd) {
		why = fmt.Sprintf("the larger of 0.5 and 2 sd of %.4g", m.Sd)
	}
	return fmt.Sprintf("%s is %.4g, more than %.4g: reference %.4g + tolerance %.4g (%s)",
		m.Measure, m.Got, m.Reference+m.Tolerance, m.Reference, m.Tolerance, why)
}

// Against returns the measures that do not hold ref, of every rate: whose mean is more than the reference + the
// larger of 0.5 and twice its deviation, or of 2 and a quarter where it gives no deviation. A nil ref is held.
func (s *Summary) Against(ref *scenario.Reference) []Miss {
	if ref == nil {
		return nil
	}
	var out []Miss
	for i := range s.Rates {
		r := &s.Rates[i]
		out = appendMiss(out, r, "over_percent", r.Over, ref.OverPercent, ref.OverSd)
		out = appendMiss(out, r, "under_percent", r.Under, ref.UnderPercent, ref.UnderSd)
		out = appendMiss(out, r, "outage_over_percent", r.OutageOver, ref.OutageOverPercent, nil)
		out = appendMiss(out, r, "outage_under_percent", r.OutageUnder, ref.OutageUnderPercent, nil)
	}
	return out
}

func appendMiss(out []Miss, r *RateSummary, name string, got Stat, want, sd *float64) []Miss {
	if want == nil {
		return out
	}
	m := Miss{Limit: r.Limit, Rate: r.Title, Measure: name, Got: got.Mean, Reference: *want, Sd: math.NaN()}
	if m.Tolerance = max(2, 0.25*math.Abs(*want)); sd != nil {
		m.Sd = *sd
		m.Tolerance = max(0.5, 2**sd)
	}
	if m.Got <= m.Reference+m.Tolerance {
		return out
	}
	return append(out, m)
}
