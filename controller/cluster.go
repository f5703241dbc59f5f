package controller

import (
	"context"
	"errors"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster reads Kubernetes for the webhook, which outlives sessions: by the newest session's cache, or where
// the object must not be old, by kube-apiserver. It is safe for concurrent use.
type cluster struct {
	readers atomic.Pointer[readers]
}

type readers struct{ cached, live client.Reader }

func (c *cluster) set(cached, live client.Reader) { c.readers.Store(&readers{cached, live}) }

var errNoCluster = errors.New("kube-apiserver has not answered yet")

// cached is a client.Reader of the cache.
type cached struct{ *cluster }

// Get implements client.Reader.
func (c cached) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if r := c.readers.Load(); r != nil {
		return r.cached.Get(ctx, key, o, opts...)
	}
	return errNoCluster
}

// List implements client.Reader.
func (c cached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if r := c.readers.Load(); r != nil {
		return r.cached.List(ctx, list, opts...)
	}
	return errNoCluster
}

// live is a client.Reader of kube-apiserver itself.
type live struct{ *cluster }

// Get implements client.Reader.
func (c live) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if r := c.readers.Load(); r != nil {
		return r.live.Get(ctx, key, o, opts...)
	}
	return errNoCluster
}

// List implements client.Reader.
func (c live) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if r := c.readers.Load(); r != nil {
		return r.live.List(ctx, list, opts...)
	}
	return errNoCluster
}
