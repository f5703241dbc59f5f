package reconcile

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kind that the cluster lacked is taken to be missing for lookAgain; its policies are looked at again a little
// later.
const (
	lookAgain  = 8 * time.Second
	askedAgain = 10 * time.Second
)

// optional are kinds that a cluster may have or not, and may get while the controller runs: those of the
// Gateway API. Each is watched from the moment on when a policy asks for it and it is there. Safe for
// concurrent use.
type optional struct {
	mapper meta.RESTMapper
	watch  func(schema.GroupVersionKind) error
	now    func() time.Time

	mu      sync.Mutex
	watched map[schema.GroupKind]schema.GroupVersionKind
	missed  map[schema.GroupKind]time.Time // when it was looked for in vain
}

func newOptional(mapper meta.RESTMapper, watch func(schema.GroupVersionKind) error) *optional {
	return &optional{mapper: mapper, watch: watch, now: time.Now,
		watched: map[schema.GroupKind]schema.GroupVersionKind{}, missed: map[schema.GroupKind]time.Time{}}
}

// Served implements kinds.
func (o *optional) Served(_ context.Context, gk schema.GroupKind) (schema.GroupVersionKind, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if gvk, ok := o.watched[gk]; ok {
		return gvk, true, nil
	}
	if at, ok := o.missed[gk]; ok && o.now().Sub(at) < lookAgain {
		return schema.GroupVersionKind{}, false, nil
	}
	mapping, err := o.mapper.RESTMapping(gk)
	if meta.IsNoMatchError(err) {
		o.missed[gk] = o.now()
		return schema.GroupVersionKind{}, false, nil
	}
	if err != nil {
		return schema.GroupVersionKind{}, false, fmt.Errorf("ask for kind %s: %w", gk, err)
	}
	gvk := mapping.GroupVersionKind
	if err := o.watch(gvk); err != nil {
		return schema.GroupVersionKind{}, false, fmt.Errorf("watch %s: %w", gk, err)
	}
	o.watched[gk] = gvk
	return gvk, true, nil
}
