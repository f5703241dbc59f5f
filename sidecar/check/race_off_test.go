//go:build !race

package check

const raceDetector = false
