//go:build race

package wire

// The race detector makes sync.Pool drop items at random.
const raceDetector = true
