package configfile

import (
	"fmt"
	"sort"
	"strings"
)

// suggestion names the known key nearest to name, or all of them where none is near.
func suggestion(name string, known map[string]int) string {
	keys := make([]string, 0, len(known))
	for k := range known {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	if near, ok := Nearest(name, keys); ok {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return "; known here: " + strings.Join(keys, ", ")
}

// Nearest is the candidate that fewest edits turn into name, upper and lower case alike; false where
// that is more than a third of it.
func Nearest(name string, candidates []string) (string, bool) {
	if len(name) > 64 {
		return "", false
	}
	best, distance := "", 1+max(1, len(name)/3)
	for _, c := range candidates {
		if d := edits(strings.ToLower(name), strings.ToLower(c)); d < distance {
			best, distance = c, d
		}
	}
	return best, best != ""
}

// edits is the number of bytes to insert, delete, replace or swap with their neighbour.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := last[j]
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
