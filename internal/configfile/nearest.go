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

// edits is the Levenshtein distance, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
