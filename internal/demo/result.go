package demo

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Result is what a run of the demo showed, by the load's own tally.
type Result struct {
	// Limit is the most that a window may hold; Window its length.
	Limit  int    `json:"limit"`
	Window string `json:"window"`
	// Offered requests that were answered: admitted and refused.
	Offered  int `json:"offered"`
	Admitted int `json:"admitted"`
	Refused  int `json:"refused"`
	// WorstWindow is the most admitted in any window's length, over all pods; OverPercent by how much that is
	// over the limit (negative: under it).
	WorstWindow int     `json:"worst_window"`
	OverPercent float64 `json:"over_percent"`
	// EnforceMS is from the moment the global window was first full to the last pod's first refusal; null
	// where some pod had nothing to refuse.
	EnforceMS *float64 `json:"enforce_ms"`
	// DecisionAgeMSP99 is the age of the newest decision header on the pods, sampled while the load ran; null
	// where none was seen.
	DecisionAgeMSP99 *float64 `json:"decision_age_ms_p99"`
}

func newResult(w watched, t *tally, pods int, ages []time.Duration) Result {
	events, total := t.snapshot()
	r := Result{Limit: w.limit, Window: short(w.window), Offered: total.offered, Admitted: total.admitted, Refused: total.refused}
	r.WorstWindow = worstWindow(events, w.window)
	r.OverPercent = round(100 * (float64(r.WorstWindow)/float64(w.limit) - 1))
	if d, ok := enforced(events, w.limit, w.window, pods); ok {
		r.EnforceMS = millis(d)
	}
	if len(ages) > 0 {
		r.DecisionAgeMSP99 = millis(percentile(ages, 0.99))
	}
	return r
}

func millis(d time.Duration) *float64 {
	ms := round(float64(d) / float64(time.Millisecond))
	return &ms
}

func round(x float64) float64 { return math.Round(x*10) / 10 }

// short writes 1m for 1m0s and 1h for 1h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// print says the result to a person.
func (r Result) print(out io.Writer) {
	fmt.Fprintf(out, "\n%d requests: %d admitted, %d refused\n", r.Offered, r.Admitted, r.Refused)
	fmt.Fprintf(out, "fullest window of %s: %d of %d (%+.1f %%)\n", r.Window, r.WorstWindow, r.Limit, r.OverPercent)
	if r.EnforceMS != nil {
		fmt.Fprintf(out, "from the full window to the last pod's refusing: %.1f ms\n", *r.EnforceMS)
	}
	if r.DecisionAgeMSP99 != nil {
		fmt.Fprintf(out, "age of the decision in force, p99: %.1f ms\n", *r.DecisionAgeMSP99)
	}
}
