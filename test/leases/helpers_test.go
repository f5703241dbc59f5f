package leases

import (
	"math/rand/v2"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// seeded draws by chance, the same for the same seed.
func seeded(seed uint64) Draw {
	rng := rand.New(rand.NewPCG(seed, 7))
	return func(_ string, lo, hi int) int { return lo + rng.IntN(hi-lo+1) }
}

// drawn draws what rapid can shrink.
func drawn(t *rapid.T) Draw {
	return func(what string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, what) }
}

// schedules is how many random schedules a search goes through.
func schedules(quick, long uint64) uint64 {
	if os.Getenv("WEIR_LONG") != "" {
		return long
	}
	return quick
}

// toRead skips what makes a table and asserts nothing, where nobody reads it.
func toRead(t *testing.T) {
	t.Helper()
	if !testing.Verbose() {
		t.Skip("makes a table: run with -v")
	}
}
