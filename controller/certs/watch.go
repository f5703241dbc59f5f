package certs

import (
	"context"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchAgain is how long to wait before a watch that ended is begun anew.
const watchAgain = 5 * time.Second

// watch says c.changed whenever one of the objects is touched, until ctx ends. A chart's upgrade that empties
// caBundle is so mended within lookGap.
func (c *Certificates) watch(ctx context.Context, list client.ObjectList, which ...client.ListOption) {
	for {
		w, err := c.client.Watch(ctx, list, which...)
		if err != nil {
			c.log.Debug("a watch cannot be begun; what it watches is read each minute", zap.Error(err))
		} else {
			c.follow(ctx, w)
		}
		if !wait(ctx, nil, watchAgain) {
			return
		}
	}
}

func (c *Certificates) follow(ctx context.Context, w watch.Interface) {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-w.ResultChan():
			if !open {
				return
			}
			select {
			case c.changed <- struct{}{}:
			default:
			}
		}
	}
}
