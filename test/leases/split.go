package leases

import "math"

// split gives out units in proportion to weights, each part rounded down or up by where offset, in [0, 1), falls. The
// parts sum to units, or to 0 if no weight is positive.
func split(units int, weights []float64, offset float64) []int {
	parts := make([]int, len(weights))
	var sum float64
	for _, w := range weights {
		sum += w
	}
	if sum <= 0 || units <= 0 {
		return parts
	}
	left, at, last := units, 0.0, -1
	for i, w := range weights {
		if w <= 0 {
			continue
		}
		from := math.Floor(at + offset)
		at += w * float64(units) / sum
		parts[i] = min(int(math.Floor(at+offset)-from), left)
		left -= parts[i]
		last = i
	}
	parts[last] += left // of rounding
	return parts
}
