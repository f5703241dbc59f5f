package secrets

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weirproxy/weir/internal/inject"
)

// Config says what is copied.
type Config struct {
	// Namespace is the controller's own.
	Namespace string
	// WatchNamespaces bound where to; empty: everywhere.
	WatchNamespaces []string
	// Names are the Secrets; none: nothing is copied.
	Names []string
	// EventsFrom names the controller in events.
	EventsFrom string
}

// Rights by name: the chart puts the installation's names in place of these. Creating cannot be bound to a
// name.
//
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=weir-identity;weir-kafka,verbs=get;list;watch;update;delete
// +kubebuilder:rbac:groups="",resources=secrets,namespace=weir-system,resourceNames=weir-identity;weir-kafka,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch;update

// Setup adds the copying to a manager. It runs on the leader alone.
func Setup(mgr ctrl.Manager, cfg Config) error {
	if len(cfg.Names) == 0 {
		return nil
	}
	c := &Copies{
		Namespace: cfg.Namespace, Watched: watched(cfg.WatchNamespaces), Secrets: map[string]client.Reader{},
		Reader: mgr.GetClient(), Writer: mgr.GetClient(), Events: mgr.GetEventRecorder(cfg.EventsFrom),
	}
	f := follower{reader: mgr.GetClient(), namespace: cfg.Namespace}
	b := ctrl.NewControllerManagedBy(mgr).Named("secretcopies").
		Watches(namespaceMetadata(), handler.EnqueueRequestsFromMapFunc(itself)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(itsNamespace), builder.WithPredicates(asked())).
		WithOptions(ctrlcontroller.Options{
			EnableWarmup: new(true), SkipNameValidation: new(true),
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, 30*time.Second),
		})
	for _, name := range cfg.Names {
		own, err := cacheOf(mgr, name, cfg)
		if err != nil {
			return err
		}
		c.Secrets[name] = own
		b = b.WatchesRawSource(source.Kind[client.Object](own, &corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(f.namespaces)))
	}
	return b.Complete(c)
}

func watched(namespaces []string) func(string) bool {
	return func(n string) bool { return len(namespaces) == 0 || slices.Contains(namespaces, n) }
}

// cacheOf is a cache of the Secrets of one name: the manager's has one selector a kind.
func cacheOf(mgr ctrl.Manager, name string, cfg Config) (cache.Cache, error) {
	only := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", name), Transform: cache.TransformStripManagedFields()}
	if len(cfg.WatchNamespaces) > 0 {
		only.Namespaces = map[string]cache.Config{cfg.Namespace: {}}
		for _, n := range cfg.WatchNamespaces {
			only.Namespaces[n] = cache.Config{}
		}
	}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: only},
	})
	if err != nil {
		return nil, fmt.Errorf("cache the Secrets %s: %w", name, err)
	}
	return c, mgr.Add(c)
}

func itself(_ context.Context, o client.Object) []reconcile.Request { return of(o.GetName()) }

func itsNamespace(_ context.Context, o client.Object) []reconcile.Request {
	return of(o.GetNamespace())
}

func of(namespace string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: namespace}}}
}

// asked passes pods whose own label asks, or did ask, for injection.
func asked() predicate.Predicate {
	enabled := func(o client.Object) bool { return o.GetLabels()[inject.Label] == inject.Enabled }
	p := predicate.NewPredicateFuncs(enabled)
	p.UpdateFunc = func(e event.UpdateEvent) bool {
		if enabled(e.ObjectOld) != enabled(e.ObjectNew) {
			return true
		}
		before, is := e.ObjectOld.(*corev1.Pod)
		after, isToo := e.ObjectNew.(*corev1.Pod)
		return enabled(e.ObjectNew) && (!is || !isToo || before.Status.Phase != after.Status.Phase)
	}
	return p
}

// follower finds the namespaces that a Secret concerns: a copy's own, an original's all.
type follower struct {
	reader    client.Reader
	namespace string
}

func (f follower) namespaces(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetNamespace() != f.namespace {
		return of(o.GetNamespace())
	}
	list := namespaceMetadataList()
	if f.reader.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
		return nil // the cache ends
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, of(list.Items[i].Name)...)
	}
	return out
}
