package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weirproxy/weir/aggregator/partition"
)

const (
	limitWidth   = 44
	counterWidth = 52
)

var topHead = []string{"limit", "rate", "counters", "fullest", "now", "over", "offered/s", "refused", "owner"}

// leftColumns are those whose cells begin at the left; numbers end at the right.
var leftColumns = [...]bool{0: true, 1: true, 3: true, 8: true}

// lines are the answer for people; with errors, those are in it too.
func (a *topAnswer) lines(withErrors bool) []string {
	out := []string{a.title()}
	rows := [][]string{topHead}
	for i := range a.Limits {
		rows = append(rows, limitRows(&a.Limits[i])...)
	}
	switch {
	case len(a.Limits) > 0:
		out = append(append(out, ""), aligned(rows)...)
	case a.answered > 0:
		out = append(out, "", "no limit has a live counter")
	}
	var notes []string
	if a.LeftOut > 0 {
		notes = append(notes, fmt.Sprintf("%d more: --limit", a.LeftOut))
	}
	if len(a.Missing) > 0 {
		notes = append(notes, "not seen: "+partitionsText(a.Missing)+". Is each aggregator named with --aggregator, and live?")
	}
	if withErrors {
		notes = append(notes, a.Errors...)
	}
	if len(notes) > 0 {
		out = append(append(out, ""), notes...)
	}
	return out
}

func (a *topAnswer) title() string {
	return fmt.Sprintf("%s · %s · %d of %s", many(len(a.Limits)+a.LeftOut, "limit"), many(a.answered, "aggregator"),
		int(a.Partitions)-len(a.Missing), many(int(a.Partitions), "partition"))
}

func many(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// limitRows are a limit's row with its fullest counter, and a row for each further one.
func limitRows(l *partition.LimitView) [][]string {
	name := l.Limit
	if l.Mode != "Enforce" {
		name += " (" + strings.ToLower(l.Mode) + ")"
	}
	owner := strings.Join(l.Owners, ", ")
	row := []string{cut(name, limitWidth), l.Rate, strconv.Itoa(l.Counters), "-", "-", overText(l.Fullest), rateText(l.Offered), partText(l.Refused), owner}
	rows := [][]string{row}
	for i := range l.Top {
		c := &l.Top[i]
		text, now := cut(counterText(c), counterWidth), percentText(c.Content/c.Amount)
		if i == 0 {
			row[3], row[4] = text, now
			continue
		}
		rows = append(rows, []string{"", "", "", text, now, "", rateText(c.Offered), "", ""})
	}
	return rows
}

func counterText(c *partition.CounterView) string {
	if len(c.CountedBy) == 0 {
		return "all of " + c.Target
	}
	return strings.Join(c.CountedBy, ", ")
}

func percentText(part float64) string { return fmt.Sprintf("%.0f%%", 100*part) }

// overText is what a window held beyond the amount.
func overText(fullest float64) string {
	if fullest < 1.0005 {
		return "-"
	}
	if fullest < 1.0995 {
		return fmt.Sprintf("+%.1f%%", 100*(fullest-1))
	}
	return fmt.Sprintf("+%.0f%%", 100*(fullest-1))
}

func partText(part float64) string {
	if part < 0.005 {
		return "-"
	}
	return percentText(part)
}

func rateText(perSecond float64) string {
	if perSecond < 10 && perSecond != math.Trunc(perSecond) {
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return strconv.FormatFloat(perSecond, 'f', 0, 64)
}

// partitionsText lists numbers in order, those that follow each other as 3–7.
func partitionsText(list []int32) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		text := strconv.Itoa(int(list[i]))
		if j > i {
			text += "–" + strconv.Itoa(int(list[j]))
		}
		parts = append(parts, text)
		i = j + 1
	}
	noun := "partition "
	if len(list) > 1 {
		noun = "partitions "
	}
	return noun + strings.Join(parts, ", ")
}

// aligned lays rows out in columns.
func aligned(rows [][]string) []string {
	widths := make([]int, len(topHead))
	for _, r := range rows {
		for i, cell := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	out := make([]string, len(rows))
	for n, r := range rows {
		var b strings.Builder
		for i, cell := range r {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				b.WriteString("  ")
			}
			if i < len(leftColumns) && leftColumns[i] {
				b.WriteString(cell + pad)
			} else {
				b.WriteString(pad + cell)
			}
		}
		out[n] = strings.TrimRight(b.String(), " ")
	}
	return out
}
