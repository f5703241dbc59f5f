package bus

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Waits are jittered between a half and the whole of a time that doubles up to max, and start again
// after reset.
func TestBackoffIsBoundedAndGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := backoff{min: time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "min"))}
		b.max = b.min + time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "more"))
		whole := b.min
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			if d := b.step(); d < whole/2 || d > whole {
				t.Fatalf("waits %v where %v is the whole", d, whole)
			}
			whole = min(2*whole, b.max)
			if whole < b.min {
				whole = b.min
			}
			if rapid.IntRange(0, 9).Draw(t, "reset") == 0 {
				b.reset()
				whole = b.min
			}
		}
	})
}
