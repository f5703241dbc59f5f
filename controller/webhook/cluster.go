package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/internal/inject"
)

// Cluster says what is around a pod. It is asked within a review, so it answers from memory where it can. Safe
// for concurrent use.
type Cluster interface {
	// Label is the value of inject.Label on a namespace.
	Label(ctx context.Context, namespace string) (string, error)
}

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// How long each read may take: a cache that is not filled yet leaves the server its time. With maxWait they stay
// within the webhook's timeoutSeconds.
const (
	cacheTimeout = 300 * time.Millisecond
	liveTimeout  = 1200 * time.Millisecond
)

// How long a namespace is known to be enabled after it was read, and how many are.
const (
	rememberFor = time.Second
	maxRemember = 1024
)

// Reader is a Cluster of a cache and, for a namespace that the cache does not say is enabled, of the server
// itself: a label may have been set a moment ago, and a pod that goes without a sidecar for that stays without.
// Reviews of one namespace share a read that is under way; that it is enabled is remembered for a second, and that it
// is not never. Make it with NewReader; it is safe for concurrent use.
type Reader struct {
	cache, live client.Reader

	mu    sync.Mutex
	reads map[string]*read // at most maxRemember that have ended, and one for each review at work
}

// read is one of the server: done is closed once label, err and until stand.
type read struct {
	done  chan struct{}
	label string
	err   error
	until time.Time
}

// NewReader makes a Cluster of a cache and of the server.
func NewReader(cache, live client.Reader) *Reader {
	return &Reader{cache: cache, live: live, reads: map[string]*read{}}
}

// Label implements Cluster.
func (r *Reader) Label(ctx context.Context, namespace string) (string, error) {
	if label, err := labelOf(ctx, cacheTimeout, r.cache, namespace); err == nil && label == inject.Enabled {
		return label, nil
	}
	shared := r.read(ctx, namespace)
	select {
	case <-shared.done:
		return shared.label, shared.err
	case <-ctx.Done():
		return "", fmt.Errorf("read namespace %s: %w", namespace, ctx.Err())
	}
}

// read is the one under way or remembered, or a new one, which goes on when the review that began it is given up.
func (r *Reader) read(ctx context.Context, namespace string) *read {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have := r.reads[namespace]; have != nil && !have.over() {
		return have
	}
	begun := &read{done: make(chan struct{})}
	r.reads[namespace] = begun
	go r.ask(context.WithoutCancel(ctx), namespace, begun)
	return begun
}

func (r *Reader) ask(ctx context.Context, namespace string, to *read) {
	label, err := labelOf(ctx, liveTimeout, r.live, namespace)
	if err != nil {
		err = fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	to.label, to.err, to.until = label, err, time.Now().Add(rememberFor)
	close(to.done)
	if err != nil || label != inject.Enabled {
		delete(r.reads, namespace)
	}
	r.bound()
}

// bound forgets what is over and, where that is not enough, all that has ended.
func (r *Reader) bound() {
	for _, forget := range []func(*read) bool{(*read).over, (*read).ended} {
		if len(r.reads) <= maxRemember {
			return
		}
		for namespace, have := range r.reads {
			if forget(have) {
				delete(r.reads, namespace)
			}
		}
	}
}

func (r *read) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *read) over() bool { return r.ended() && !time.Now().Before(r.until) }

// NamespaceOf is the kind of object that is read of a namespace; the zero value but for its type and name.
func NamespaceOf(name string) *metav1.PartialObjectMetadata {
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	n.Name = name
	return n
}

func labelOf(ctx context.Context, limit time.Duration, c client.Reader, namespace string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	n := NamespaceOf(namespace)
	if err := c.Get(ctx, client.ObjectKey{Name: namespace}, n); err != nil {
		return "", err
	}
	return n.Labels[inject.Label], nil
}
