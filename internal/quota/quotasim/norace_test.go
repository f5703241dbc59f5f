//go:build !race

package quotasim

const raceEnabled = false
