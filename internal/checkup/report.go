package checkup

import (
	"fmt"
	"strings"
)

// Report is what all checks found, in their order. The JSON names are stable.
type Report struct {
	// Version is the program's that looked.
	Version string `json:"version"`
	// Result is the worst level: ok, warning or failed. What was skipped does not count.
	Result Level `json:"result"`
	// Failed, Warnings, Skipped and OK are how many findings there are of each level.
	Failed   int `json:"failed"`
	Warnings int `json:"warnings"`
	Skipped  int `json:"skipped"`
	OK       int `json:"ok"`
	// Denied is how many of the skipped were so for lack of a right.
	Denied   int       `json:"denied"`
	Findings []Finding `json:"findings"`
}

func (r *Report) add(check string, findings ...Finding) {
	for _, f := range findings {
		f.Check, f.Text, f.Fix = check, OneLine(f.Text), OneLine(f.Fix)
		r.Findings = append(r.Findings, f)
		switch f.Level {
		case Failed:
			r.Failed++
		case Warning:
			r.Warnings++
		case Skipped:
			r.Skipped++
			if f.Denied {
				r.Denied++
			}
		default:
			r.OK++
		}
	}
	r.Result = r.worst()
}

func (r *Report) worst() Level {
	switch {
	case r.Failed > 0:
		return Failed
	case r.Warnings > 0:
		return Warning
	}
	return OK
}

// Err is what to end with: an error where anything failed or, with strict, where anything is not in order, or may be
// out of order unseen since this user has no right to look at it.
func (r *Report) Err(strict bool) error {
	if r.Failed > 0 {
		return fmt.Errorf("%s failed", Many(r.Failed, "check"))
	}
	var not []string
	if r.Warnings > 0 {
		not = append(not, Many(r.Warnings, "warning"))
	}
	if r.Denied > 0 {
		not = append(not, fmt.Sprintf("%d not looked at for lack of rights", r.Denied))
	}
	if strict && len(not) > 0 {
		return fmt.Errorf("%s, and --strict takes them for failures", strings.Join(not, ", "))
	}
	return nil
}
