package bus

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// A program starts by reading a topic to its end: what fits in one answer comes in one, handed over as one, and the end is
// told without asking again, which would wait for a record that nobody writes.
func TestTheEndIsToldWithTheAnswerThatReachesIt(t *testing.T) {
	onEach(t, func(t *testing.T, c *Client) {
		n := topic(t, c, 1)
		values := make([]string, 200)
		for i := range values {
			values[i] = fmt.Sprint(i)
		}
		mustPut(t, c, n, 0, values...)
		var told tape
		handled := 0
		r := NewReader(c, ReaderConfig{
			Topic: n, Partitions: map[int32]From{0: {}}, MaxWait: 10 * time.Minute,
			Handle:   func(Message) { handled++ },
			Fetched:  func(p int32) { told.add("fetched/%d:%d", p, handled) },
			CaughtUp: func(p int32) { told.add("caught-up/%d", p) },
		})
		stop := run(t, func(ctx context.Context) error { return r.Run(ctx) })
		eventually(t, "the end is told", func() bool { return told.has("caught-up/0") })
		stop()
		if got := told.String(); got != "fetched/0:200 caught-up/0" {
			t.Errorf("told: %s", got)
		}
	})
}
