package load

import "slices"

// MaxWindow returns the most events that any window of width w holds. A window
// is half-open, [start, start+w): two events exactly w apart are not in one.
// Times and w are in the same unit and w > 0; times need no order and are not
// changed. It takes O(n log n), O(n) if they are in order.
func MaxWindow(times []int64, w int64) int {
	times = inOrder(times)
	most, first := 0, 0
	for i, t := range times {
		for t-times[first] >= w {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// CountBetween returns how many times lie in [from, to).
func CountBetween(times []int64, from, to int64) int {
	n := 0
	for _, t := range times {
		if from <= t && t < to {
			n++
		}
	}
	return n
}

func inOrder(times []int64) []int64 {
	if slices.IsSorted(times) {
		return times
	}
	times = slices.Clone(times)
	slices.Sort(times)
	return times
}
