//go:build race

package check

// The race detector makes sync.Pool drop items at random.
const raceDetector = true
