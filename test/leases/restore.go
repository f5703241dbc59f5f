package leases

import "time"

// Logged is a message and the broker's stamp on it.
type Logged[T any] struct {
	Message *T
	Stamp   time.Duration
}

// Restore takes over from the logs: of the batches all that lie before the owner's own first one, of the
// reports all before its claim, which bears the stamp claim.
func (o *Owner) Restore(batches []Logged[Batch], reports []Logged[Report], claim time.Duration) {
	for _, b := range batches {
		if o.rules.omits(Forgetful) {
			break
		}
		for _, g := range b.Message.Grants {
			o.charge(o.account(podRun{g.Pod, g.Run}), b.Message.ID, g.Units, o.rules.believed(claim-b.Stamp))
		}
	}
	for _, r := range reports {
		o.Ingest(r.Message, o.rules.believed(claim-r.Stamp))
	}
}
