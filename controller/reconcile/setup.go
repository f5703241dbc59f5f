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
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
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

// Config of the loop.
type Config struct {
	Topic Topic
	Fleet Fleet
	// WatchNamespaces bound the policies that are in force; empty: all are.
	WatchNamespaces []string
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
	m := mapper{reader: mgr.GetClient()}
	var c ctrlcontroller.Controller
	optional := newOptional(mgr.GetRESTMapper(), func(gvk schema.GroupVersionKind) error {
		return c.Watch(source.Kind[client.Object](mgr.GetCache(), metadata(gvk),
			handler.EnqueueRequestsFromMapFunc(m.byName(gvk.Kind)), existence()))
	})
	r := &Policies{
		client: mgr.GetClient(), topic: cfg.Topic, fleet: cfg.Fleet, status: status.Make, now: time.Now, events: mgr.GetEventRecorder(Name),
		watched: watched(cfg.WatchNamespaces), resolver: resolver{reader: mgr.GetClient(), kinds: optional},
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
	var err error
	c, err = b.Build(r)
	return err
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
				for _, n := range names {
					q.Add(reconcile.Request{NamespacedName: n})
				}
			}
		}()
		return nil
	})
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
