package aggregator

import (
	"fmt"

	"github.com/weirproxy/weir/aggregator/ingest"
)

// readiness: ready is a member of the group with nothing to wait for. Partitions that are being taken over
// and policies that were refused are named, but do not make it unready.
func (a *Aggregator) readiness() (bool, []string) {
	c := a.core.get()
	reasons := a.waits.List()
	if c == nil {
		return false, append(reasons, "kafka: not connected yet")
	}
	select {
	case <-c.policies.Ready():
	default:
		reasons = append(reasons, "policies: not read to their end yet")
	}
	ready := len(reasons) == 0
	for _, h := range c.owner.Holdings() {
		if h.State != ingest.Live {
			reasons = append(reasons, fmt.Sprintf("partition %d: %s", h.Partition, h.State))
		} else if h.Gauges.StoreAway {
			reasons = append(reasons, fmt.Sprintf("partition %d: the store is away, going on from memory", h.Partition))
		}
	}
	if c.files != nil {
		if problem := c.files.Problem(); problem != "" {
			reasons = append(reasons, "policy files: the last good versions stay in force: "+problem)
		}
	}
	for _, p := range c.policies.Problems() {
		reasons = append(reasons, fmt.Sprintf("policy %s: version %d is refused: %v", p.Key, p.Version, p.Err))
	}
	for _, x := range c.policies.Current().Conflicts() {
		reasons = append(reasons, fmt.Sprintf("policy %s: %s is in force, %v ignored", x.Name, x.InForce, x.Ignored))
	}
	return ready, reasons
}
