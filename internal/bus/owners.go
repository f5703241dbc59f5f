package bus

import (
	"context"
	"maps"
	"slices"
	"time"
)

// owners runs own for the partitions held. One goroutine uses it.
type owners struct {
	cfg  GroupConfig
	conf Config
	own  func(ctx context.Context, partition int32) error
	held map[int32]*owner
	late map[int32]*owner // told to stop, not stopped in time
}

type owner struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func newOwners(cfg GroupConfig, conf Config, own func(context.Context, int32) error) *owners {
	return &owners{cfg: cfg, conf: conf, own: own, held: map[int32]*owner{}, late: map[int32]*owner{}}
}

// set stops what is not in want, waits for it, starts what is new, and says whether any was stopped.
func (o *owners) set(want []int32) (lost bool) {
	stopping := map[int32]*owner{}
	for p, w := range o.held {
		if !slices.Contains(want, p) {
			w.cancel()
			stopping[p] = w
			delete(o.held, p)
		}
	}
	o.await(stopping)
	for _, p := range want {
		if o.held[p] == nil {
			o.held[p] = o.start(p)
		}
	}
	return len(stopping) > 0
}

// await waits for all within one StopTimeout. Who is late is remembered: the partition's next owner
// here starts only after it.
func (o *owners) await(stopping map[int32]*owner) {
	t := time.NewTimer(o.cfg.StopTimeout)
	defer t.Stop()
	over := false
	for p, w := range stopping {
		if !over {
			select {
			case <-w.done:
				continue
			case <-t.C:
				over = true
			}
		}
		select {
		case <-w.done:
		default:
			o.late[p] = w
			o.cfg.Ended(p, ErrSlowStop)
		}
	}
}

func (o *owners) start(p int32) *owner {
	ctx, cancel := context.WithCancel(context.Background())
	w := &owner{cancel: cancel, done: make(chan struct{})}
	before := o.late[p]
	delete(o.late, p)
	go func() {
		defer close(w.done)
		defer cancel()
		if before != nil {
			<-before.done
		}
		o.run(ctx, p)
	}()
	return w
}

// run runs own, again where it returns early.
func (o *owners) run(ctx context.Context, p int32) {
	wait := backoff{min: o.conf.BackoffMin, max: o.conf.BackoffMax}
	for ctx.Err() == nil {
		began := time.Now()
		err := o.own(ctx, p)
		if ctx.Err() != nil {
			return
		}
		o.cfg.Ended(p, err)
		if time.Since(began) > 4*o.conf.BackoffMax {
			wait.reset()
		}
		if !pause(ctx, wait.step()) {
			return
		}
	}
}

func (o *owners) partitions() []int32 { return slices.Sorted(maps.Keys(o.held)) }
