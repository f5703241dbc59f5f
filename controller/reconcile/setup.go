package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weirproxy/weir/api/v1alpha1/kube"
	"github.com/weirproxy/weir/controller/changes"
	"github.com/weirproxy/weir/controller/status"
)

// Name is the controller's, in logs, metrics and events.
const Name = "weir-controller"

// Pauses: how long pods' changes are gathered; how soon a policy is tried again that could not be published,
// or of which the cache was behind; the longest after errors.
const (
	podsPause     = 200 * time.Millisecond
	retryAfter    = 5 * time.Second
	conflictAfter = 100 * time.Millisecond
	longestRetry  = 30 * time.Second
)

// coldFor is how long a process that starts leaves statuses as they are while it has not read the topics, or heard no
// sidecar, which each report every 10 s.
const coldFor = 15 * time.Second

// sweepEach is how often a leader looks at all policies and at the topic's orphans, whatever it was told: what a
// process that lost its lease had in mind, nobody tells again.
const sweepEach = 5 * time.Minute

// reconcileTimeout bounds one look: above what a record may take, and below what a person waits.
const reconcileTimeout = 20 * time.Second

// askTimeout bounds a question to kube-apiserver about what it serves.
const askTimeout = 5 * time.Second

// Config of the loop.
type Config struct {
	Topic Topic
	Fleet Fleet
	// WatchNamespaces bound the policies that are in force; empty: all are.
	WatchNamespaces []string
	// Leads reports whether this process is the leader now. Safe for concurrent use. nil: it always is.
	Leads func() bool
	// Began is when the process did: at first it waits for the topics before it writes a status. The zero value:
	// it does not.
	Began time.Time
}

// Setup adds the loop to a manager. It runs on the leader alone; its caches and queue are warm on all.
func Setup(ctx context.Context, mgr ctrl.Manager, cfg Config) error {
	index := mgr.GetFieldIndexer()
	if err := index.IndexField(ctx, &kube.QuotaPolicy{}, policyTargets, policyKeys); err != nil {
		return fmt.Errorf("index policies: %w", err)
	}
	if err := index.IndexField(ctx, &corev1.Pod{}, podTargets, podKeys); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	m := mapper{reader: mgr.GetClient(), fleet: cfg.Fleet}
	var c ctrlcontroller.Controller
	server, err := server(mgr)
	if err != nil {
		return err
	}
	optional := newOptional(server, func(gvk schema.GroupVersionKind) error {
		return c.Watch(source.Kind[client.Object](mgr.GetCache(), metadata(gvk),
			handler.EnqueueRequestsFromMapFunc(m.byName(gvk.Kind)), existence()))
	}, func(gvk schema.GroupVersionKind) error { return mgr.GetCache().RemoveInformer(ctx, metadata(gvk)) })
	r := &Policies{
		client: mgr.GetClient(), topic: cfg.Topic, fleet: cfg.Fleet, status: status.Make, now: time.Now, events: mgr.GetEventRecorder(Name),
		watched: watched(cfg.WatchNamespaces), resolver: resolver{reader: mgr.GetClient(), kinds: optional}, leads: cfg.Leads, began: cfg.Began,
	}
	if r.leads == nil {
		r.leads = func() bool { return true }
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("quotapolicy").
		For(&kube.QuotaPolicy{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, ending()))).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(m.byName(kindService)), builder.WithPredicates(selection())).
		Watches(&corev1.Pod{}, m.pods(podsPause)).
		WithOptions(options())
	for _, kind := range workloads() {
		gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}
		b = b.Watches(metadata(gvk), handler.EnqueueRequestsFromMapFunc(m.byName(kind)), builder.WithPredicates(existence()))
	}
	for _, set := range []*changes.Set{cfg.Topic.Changes(), cfg.Fleet.Changes()} {
		b = b.WatchesRawSource(follow(set, all{mgr.GetClient(), cfg.Topic}.names))
	}
	if c, err = b.Build(elected{mgr.Elected(), r}); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		sweep(ctx, cfg.Topic.Changes(), time.Tick(sweepEach))
		return nil
	}))
}

// sweep makes all policies be looked at, and orphans be looked for: at once, as the leader has just been elected,
// and at each tick until ctx ends.
func sweep(ctx context.Context, set *changes.Set, tick <-chan time.Time) {
	for {
		set.AddAll()
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// elected holds a reconciler until its manager says that it leads: workers start a moment earlier.
type elected struct {
	since <-chan struct{}
	reconcile.Reconciler
}

// Reconcile implements reconcile.Reconciler.
func (e elected) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	select {
	case <-e.since:
		return e.Reconciler.Reconcile(ctx, r)
	case <-ctx.Done():
		return reconcile.Result{}, ctx.Err()
	}
}

// server asks kube-apiserver itself what it serves: the manager's mapper remembers it for ever.
func server(mgr ctrl.Manager) (discovery, error) {
	cfg := rest.CopyConfig(mgr.GetConfig())
	cfg.Timeout = askTimeout
	d, err := clientdiscovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("ask what the cluster serves: %w", err)
	}
	return d, nil
}

func watched(namespaces []string) func(string) bool {
	return func(n string) bool { return len(namespaces) == 0 || slices.Contains(namespaces, n) }
}

func metadata(gvk schema.GroupVersionKind) client.Object {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	return m
}

func options() ctrlcontroller.Options {
	return ctrlcontroller.Options{
		MaxConcurrentReconciles: 4,
		ReconciliationTimeout:   reconcileTimeout,
		EnableWarmup:            new(true),
		SkipNameValidation:      new(true), // another session in this process is another manager
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, longestRetry),
	}
}

// ending passes a policy that somebody's finalizer holds up: it is no longer in force.
func ending() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetDeletionTimestamp() != nil })
}

// follow is a source of the policies that a set says have changed.
func follow(set *changes.Set, all func(context.Context) ([]types.NamespacedName, error)) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		go func() {
			for {
				batch, err := set.Next(ctx)
				if err != nil {
					return
				}
				names := batch.Names
				if batch.All {
					if names, err = all(ctx); err != nil {
						return // only where the cache ends
					}
				}
				add(q, names, batch.All)
			}
		}()
		return nil
	})
}

// add puts policies into the queue; later: behind those that something is known to have happened to.
func add(q queue, names []types.NamespacedName, later bool) {
	p, prioritized := q.(priorityqueue.PriorityQueue[reconcile.Request])
	for _, n := range names {
		if r := (reconcile.Request{NamespacedName: n}); later && prioritized {
			p.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, r)
		} else {
			q.Add(r)
		}
	}
}

// all are the policies that there are, and those that only the topic has any more.
type all struct {
	reader client.Reader
	topic  Topic
}

func (a all) names(ctx context.Context) ([]types.NamespacedName, error) {
	var list kube.QuotaPolicyList
	if err := a.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list policies: %w", err)
	}
	exists := make(map[types.NamespacedName]bool, len(list.Items))
	out := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		n := client.ObjectKeyFromObject(&list.Items[i])
		exists[n] = true
		out = append(out, n)
	}
	orphans := a.topic.Orphans(func(n types.NamespacedName) bool { return exists[n] })
	return append(out, orphans...), nil
}
