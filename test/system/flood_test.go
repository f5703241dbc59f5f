package system

import (
	"strconv"
	"testing"
	"time"

	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/world"
)

// floodMemory is the stated bound of a sidecar's resident memory, bytes: 1.5 KiB for each counter that
// the table holds, 32 MiB for all else (docs/design/memory.md).
const floodMemory = 50_000*3<<9 + 32<<20

// 200,000 distinct clients: memory stays bounded, and clients that were there keep their limits.
func TestCase18FloodOfClients(t *testing.T) {
	w := world.Settled(t, 1, 1, world.Policy(world.EachClient(100, "")))
	const length = 56 * time.Second
	known := func(client string, perSecond float64) load.Source {
		return load.Source{
			Name: client, Rate: load.Constant(perSecond),
			Request: load.Request{Path: "/", Header: map[string]string{"x-api-key": client}},
		}
	}
	flood := load.Source{
		Name: "flood",
		Rate: load.Steps(load.Step{For: 5 * time.Second}, load.Step{For: length, PerSecond: 4000}),
		Make: func(k int) *load.Request {
			return &load.Request{Path: "/", Header: map[string]string{"x-api-key": "flood-" + strconv.Itoa(k)}}
		},
	}
	direct := load.GRPC("unix://"+w.Pods[0].Socket, 4)
	run, err := load.Start(load.Config{
		Pods:    []load.Pod{{Name: "orders-0", Target: direct}},
		Sources: []load.Source{known("modest", 50), known("greedy", 200), flood}, For: length, Outstanding: 2048,
	})
	w.Must(err)
	res := run.Wait()

	if n := res.Of("flood").Requests(); n < 200_000 {
		t.Errorf("only %d distinct clients came through", n)
	}
	modest, greedy := res.Of("modest"), res.Of("greedy")
	if modest.Errors > 0 || modest.Denied > 0 {
		t.Errorf("a client at half its limit was refused %d times, %d errors", modest.Denied, modest.Errors)
	}
	mean := float64(greedy.Admitted) / length.Seconds() / 100
	t.Logf("the client at twice its limit got %.3f of it", mean)
	if mean < 0.8 || mean > 1.1 {
		t.Errorf("the client at twice its limit got %.3f of it", mean)
	}
	rss := w.Pods[0].Sidecar.RSS()
	t.Logf("sidecar %d MiB, aggregator %d MiB resident", rss>>20, w.Owners[0].Process.RSS()>>20)
	if rss > floodMemory {
		t.Errorf("the sidecar uses %d MiB", rss>>20)
	}
}
