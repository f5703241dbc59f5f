package render

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/weirproxy/weir/internal/simulate/measure"
)

// Result is a scenario that was run.
type Result struct {
	*measure.Summary
	Pods    int
	Seconds float64 // of one run, virtual
	// Referenced: the scenario has a reference, of which Misses were not held.
	Referenced bool
	Misses     []measure.Miss
}

// maxWidth is how wide a table may be, columns.
const maxWidth = 100

// Table writes a line for each rate of each scenario, what the columns mean, and, a line each, what was measured during
// faults and which references were not held.
func Table(w io.Writer, results []Result) error {
	cols := columnsOf(results)
	for i := range results {
		for k := range results[i].Rates {
			addRow(cols, &results[i], k)
		}
	}
	lines := layout(cols)
	lines = append(lines, "")
	lines = append(lines, meaning(results)...)
	if extra := remarks(results); len(extra) > 0 {
		lines = append(append(lines, ""), extra...)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// entry is one line's subject: rate k of a scenario.
type entry struct {
	*Result
	k int
}

func (e entry) rate() *measure.RateSummary { return &e.Rates[e.k] }

// column of a table. Where a table is too wide, the spare ones go, and then the left ones, which are texts, are shortened.
type column struct {
	head        [2]string
	left, spare bool
	value       func(entry) string
	cells       []string
}

// columnsOf are the columns that tell something of the results.
func columnsOf(results []Result) []*column {
	runs, referenced := about(results)
	var cols []*column
	add := func(above, below string, value func(entry) string) *column {
		c := &column{head: [2]string{above, below}, value: value}
		cols = append(cols, c)
		return c
	}
	stat := func(name string, of func(*measure.RateSummary) measure.Stat) (worst *column) {
		if runs == 1 {
			add(name, "%", func(e entry) string { return figure(of(e.rate()).Mean, 1) })
			return &column{}
		}
		add(name+" %", "mean", func(e entry) string { return figure(of(e.rate()).Mean, 1) })
		return add("", "worst", func(e entry) string { return figure(of(e.rate()).Worst, 1) })
	}
	add("", "scenario", scenarioName).left = true
	add("", "limit", limit).left = true
	add("offered", "units/s", func(e entry) string { return figure(e.rate().Offered/e.Seconds, 0) })
	add("refused", "%", func(e entry) string { return figure(100*(1-e.rate().Admitted/e.rate().Offered), 1) })
	stat("over", func(r *measure.RateSummary) measure.Stat { return r.Over })
	stat("under", func(r *measure.RateSummary) measure.Stat { return r.Under }).spare = true
	add("enforce", "ms", func(e entry) string { return figure(e.rate().EnforceMillis.Mean, 0) })
	add("false", "deny %", func(e entry) string { return figure(e.rate().FalseDenials.Mean, 1) })
	add("msg/s", "a pod", messages)
	if referenced {
		add("", "ref.", func(e entry) string { return reference(e.Result, e.rate()) })
	}
	return cols
}

// about says what the results have: the most runs of one, and references.
func about(results []Result) (runs int, referenced bool) {
	for i := range results {
		runs = max(runs, results[i].Runs)
		referenced = referenced || results[i].Referenced
	}
	return runs, referenced
}

func scenarioName(e entry) string {
	if e.k > 0 {
		return ""
	}
	return printable(e.Name)
}

// limit is a rate, with the limit's name where the scenario's policy has given one.
func limit(e entry) string {
	if e.Single {
		return printable(e.rate().Title)
	}
	return printable(e.rate().Limit + " " + e.rate().Title)
}

// messages are those of usage: of the whole policy, so once a scenario.
func messages(e entry) string {
	if e.k > 0 {
		return ""
	}
	return figure(e.UsageMessages.Mean/float64(e.Pods), 1)
}

func reference(r *Result, rate *measure.RateSummary) string {
	if !r.Referenced {
		return "-"
	}
	for _, m := range r.Misses {
		if m.Limit == rate.Limit && m.Rate == rate.Title {
			return "MISSED"
		}
	}
	return "held"
}

// figure is a number of a table, "-" where there is none.
func figure(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "-"
	}
	if s := number(v, decimals); strings.Trim(s, "-0.") != "" {
		return s
	}
	return number(0, decimals)
}

func addRow(cols []*column, r *Result, k int) {
	for _, c := range cols {
		c.cells = append(c.cells, c.value(entry{r, k}))
	}
}

// layout aligns columns below their heads.
func layout(cols []*column) []string {
	if tooWide(widthsOf(cols)) > 0 {
		cols = slices.DeleteFunc(cols, func(c *column) bool { return c.spare })
	}
	widths := fit(cols)
	line := func(cell func(*column) string) string {
		var b strings.Builder
		for i, c := range cols {
			text := shorten(cell(c), widths[i])
			if gap := strings.Repeat(" ", widths[i]-len([]rune(text))); c.left {
				b.WriteString(text + gap)
			} else {
				b.WriteString(gap + text)
			}
			b.WriteString("  ")
		}
		return strings.TrimRight(b.String(), " ")
	}
	lines := []string{line(func(c *column) string { return c.head[0] }), line(func(c *column) string { return c.head[1] })}
	for i := range cols[0].cells {
		lines = append(lines, line(func(c *column) string { return c.cells[i] }))
	}
	return lines
}

// widthsOf is how wide each column would be.
func widthsOf(cols []*column) []int {
	widths := make([]int, len(cols))
	for i, c := range cols {
		for _, text := range append(c.head[:], c.cells...) {
			widths[i] = max(widths[i], len([]rune(text)))
		}
	}
	return widths
}

// tooWide is by how many columns a table does not fit.
func tooWide(widths []int) int {
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	return total - maxWidth
}

// fit is how wide each column becomes: the widest texts give way until the table fits.
func fit(cols []*column) []int {
	const least = 8
	widths := widthsOf(cols)
	for range max(tooWide(widths), 0) {
		widest := 0
		for i, c := range cols {
			if c.left && widths[i] > widths[widest] {
				widest = i
			}
		}
		widths[widest] = max(widths[widest]-1, least)
	}
	return widths
}

// shorten cuts a text in its middle: a limit keeps its rate.
func shorten(text string, width int) string {
	r := []rune(text)
	if len(r) <= width {
		return text
	}
	head := (width - 2) / 2
	return string(r[:head]) + ".." + string(r[len(r)-(width-2-head):])
}

func meaning(results []Result) []string {
	runs, _ := about(results)
	lines := []string{
		"over: how far the fullest window of any counter was above its limit (negative: below).",
		"under: how much less was admitted than by an exact central limiter (negative: more).",
		"enforce: from a full window until the admitted rate is the limit's. false deny: refused while the",
		"window was below 98 % of the limit, of what was offered. msg/s: reports of usage.",
	}
	if runs > 1 {
		lines = append(lines, "Figures are means over the runs of a scenario; worst: of its worst run.")
	}
	return lines
}

// remarks are what has no column: faults' measures and references not held.
func remarks(results []Result) []string {
	var lines []string
	for i := range results {
		r := &results[i]
		for k := range r.Rates {
			rate := &r.Rates[k]
			if over, under := figure(rate.OutageOver.Mean, 1), figure(rate.OutageUnder.Mean, 1); over != "-" || under != "-" {
				lines = append(lines, fmt.Sprintf("%s: during the fault %s %% over, %s %% under.", subject(r, rate), over, under))
			}
		}
		if len(r.Sources) > 1 {
			for _, src := range r.Sources {
				lines = append(lines, fmt.Sprintf("%s: refused of %s %s %%, by an exact limiter %s %%.", printable(r.Name),
					printable(src.Name), figure(src.Refused.Mean, 1), figure(src.ExactRefused.Mean, 1)))
			}
		}
		for _, m := range r.Misses {
			lines = append(lines, fmt.Sprintf("%s: reference missed: %s.", subject(r, &measure.RateSummary{Limit: m.Limit, Title: m.Rate}), m))
		}
	}
	return lines
}

// subject names a rate where a scenario alone does not.
func subject(r *Result, rate *measure.RateSummary) string {
	name := printable(r.Name)
	if !r.Single {
		name += ", " + printable(rate.Limit+" "+rate.Title)
	}
	return name
}
