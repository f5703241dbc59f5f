package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kind that the cluster lacked is taken to be missing for lookAgain; its policies are looked at again a little
// later. One that it has may be served in another version one day, and is asked for each confirmEach.
const (
	lookAgain   = 8 * time.Second
	askedAgain  = 10 * time.Second
	confirmEach = time.Minute
)

// How long the first list of a kind is waited for, and one that has been late before.
const (
	listPatience = 5 * time.Second
	latePatience = 100 * time.Millisecond
)

// served is an optional kind as the cluster has it.
type served struct {
	gvk schema.GroupVersionKind
	// missing is why there is none, "" where there is.
	missing string
	// patience is how long a read may wait for the kind's objects to be listed.
	patience time.Duration
}

// discovery is what kube-apiserver says that it serves.
type discovery interface {
	ServerGroups() (*metav1.APIGroupList, error)
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// optional are kinds that a cluster may have or not, and may get while the controller runs: those of the
// Gateway API. Each is watched from the moment on when a policy asks for it and it is there, in the version that
// is served. Safe for concurrent use.
type optional struct {
	server discovery
	watch  func(schema.GroupVersionKind) error
	forget func(schema.GroupVersionKind) error // ends the watch
	now    func() time.Time

	mu    sync.Mutex
	known map[schema.GroupKind]*known
}

// known is what was found out last of a kind.
type known struct {
	gvk   schema.GroupVersionKind // empty: the cluster lacks it
	asked time.Time
	late  bool
}

func newOptional(server discovery, watch, forget func(schema.GroupVersionKind) error) *optional {
	return &optional{server: server, watch: watch, forget: forget, now: time.Now, known: map[schema.GroupKind]*known{}}
}

// Served implements kinds.
func (o *optional) Served(_ context.Context, gk schema.GroupKind) (served, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.known[gk]
	if k == nil {
		k = &known{}
		o.known[gk] = k
	}
	if k.fresh(o.now()) {
		return k.served(gk), nil
	}
	gvk, err := o.find(gk, k.gvk)
	switch {
	case err != nil && !k.gvk.Empty():
		return k.served(gk), nil // what is cached holds until kube-apiserver answers again
	case err != nil:
		return served{}, fmt.Errorf("ask for kind %s: %w", gk, err)
	}
	if err := o.follow(k, gvk); err != nil {
		return served{}, fmt.Errorf("watch %s: %w", gk, err)
	}
	k.asked = o.now()
	return k.served(gk), nil
}

// Late implements kinds.
func (o *optional) Late(gk schema.GroupKind, late bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k := o.known[gk]; k != nil {
		k.late = late
	}
}

func (k *known) fresh(now time.Time) bool {
	each := confirmEach
	if k.gvk.Empty() {
		each = lookAgain
	}
	return !k.asked.IsZero() && now.Sub(k.asked) < each
}

func (k *known) served(gk schema.GroupKind) served {
	switch {
	case k.gvk.Empty():
		return served{missing: fmt.Sprintf("the cluster has no kind %s; install the Gateway API's definitions", gk)}
	case k.late:
		return served{gvk: k.gvk, patience: latePatience}
	}
	return served{gvk: k.gvk, patience: listPatience}
}

// follow watches a kind in the version that is served now, and no more in the one before. o.mu is held.
func (o *optional) follow(k *known, gvk schema.GroupVersionKind) error {
	if k.gvk == gvk {
		return nil
	}
	if !gvk.Empty() {
		if err := o.watch(gvk); err != nil {
			return err
		}
	}
	before := k.gvk
	k.gvk, k.late = gvk, false
	if before.Empty() {
		return nil
	}
	return o.forget(before)
}

// find asks in which version a kind is served: in the one before as long as there is that, else in the one that the
// server prefers. Empty: in none.
func (o *optional) find(gk schema.GroupKind, before schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	groups, err := o.server.ServerGroups()
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	for _, version := range versions(groups, gk.Group, before.Version) {
		list, err := o.server.ServerResourcesForGroupVersion(schema.GroupVersion{Group: gk.Group, Version: version}.String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return schema.GroupVersionKind{}, err
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == gk.Kind }) {
			return gk.WithVersion(version), nil
		}
	}
	return schema.GroupVersionKind{}, nil
}

// versions of a group, the one of before first, then the server's order.
func versions(groups *metav1.APIGroupList, group, before string) []string {
	var out []string
	for _, g := range groups.Groups {
		if g.Name != group {
			continue
		}
		for _, v := range g.Versions {
			if v.Version == before {
				out = slices.Insert(out, 0, v.Version)
			} else {
				out = append(out, v.Version)
			}
		}
	}
	return out
}
