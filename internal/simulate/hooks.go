package simulate

import (
	"github.com/weirproxy/weir/aggregator/store"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/quota"
)

// hooks let a test look on from outside of the code that is simulated. What is nil sees nothing, and none of it may
// change anything.
type hooks struct {
	// charged: a check admitted cost units to a counter.
	charged func(p *pod, id wirev1.ID, cost uint64)
	// appended: a report that its pod handed over at sent is in the log.
	appended func(p *pod, value []byte, sent quota.Time, offset int64)
	// acknowledged: the pod is told so of one of its reports.
	acknowledged func(p *pod, value []byte)
	// heard: take hands the batch to the pod, and is to be called once.
	heard func(p *pod, d *decision, take func())
	// claimed: the store took the claim of an owner that will read from o.next on; before is the record that it found.
	claimed func(o *owner, before store.Record)
	// flushed: what the store said to a write, whether or not the owner hears of it.
	flushed func(o *owner, err error)
}
