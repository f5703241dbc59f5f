package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/zapr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weirproxy/weir/api/v1alpha1/kube"
	"github.com/weirproxy/weir/controller/reconcile"
	"github.com/weirproxy/weir/controller/secrets"
	"github.com/weirproxy/weir/controller/webhook"
)

// How long to wait before kube-apiserver is asked again, and how long it may take to answer.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 10 * time.Second
	askTimeout   = 10 * time.Second
)

// runKubernetes runs one session with kube-apiserver after the other until ctx ends. A session ends where the
// lease is lost; a new one begins as standby.
func (c *Controller) runKubernetes(ctx context.Context) error {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := c.session(ctx)
		if ctx.Err() != nil {
			return err
		}
		if time.Since(began) > longestPause {
			pause = firstPause
		}
		c.waits.Set(waitsKubernetes, reason(err))
		pause = c.sleep(ctx, pause)
	}
	return nil
}

// sleep waits for a jittered pause and returns the next one.
func (c *Controller) sleep(ctx context.Context, pause time.Duration) time.Duration {
	t := time.NewTimer(pause/2 + rand.N(pause)) //nolint:gosec // jitter
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return min(2*pause, longestPause)
}

func reason(err error) string {
	if err == nil {
		return "the session with kube-apiserver ended"
	}
	return err.Error()
}

// session is one life of a manager: caches, the lease, and while it is held, the loops.
func (c *Controller) session(ctx context.Context) error {
	if err := c.ask(ctx); err != nil {
		return err
	}
	mgr, err := c.manager()
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	if err := c.add(ctx, mgr); err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	c.tenure.begin(mgr.Elected())
	defer c.tenure.end()
	return mgr.Start(ctx)
}

// ask finds out whether there is a kube-apiserver that knows policies.
func (c *Controller) ask(ctx context.Context) error {
	cfg := *c.rest
	cfg.Timeout = askTimeout
	d, err := discovery.NewDiscoveryClientForConfig(&cfg)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	_, err = d.ServerResourcesForGroupVersion(kube.GroupVersion().String())
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the cluster has no QuotaPolicy (%s): install the chart weir-crds", kube.GroupVersion())
	case err != nil:
		return fmt.Errorf("kube-apiserver does not answer: %w", err)
	}
	return ctx.Err()
}

// Rights on the lease, in the controller's own namespace. Creating cannot be bound to a name.
//
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=weir-system,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=weir-system,resourceNames=weir-controller,verbs=get;update
// +kubebuilder:rbac:groups="",resources=events,namespace=weir-system,verbs=create;patch

// manager of a session. It serves nothing: admin and metrics outlive it.
func (c *Controller) manager() (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), kube.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	lease, deadline, retry := c.cfg.Lease, c.cfg.Lease*2/3, c.cfg.Lease*2/15
	grace := c.cfg.Grace * 3 / 4
	return ctrl.NewManager(c.rest, ctrl.Options{
		Scheme: scheme, Logger: zapr.NewLogger(c.log.Named("kubernetes")),
		Cache:                         c.caches(),
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                c.cfg.LeaderElection.Enabled,
		LeaderElectionID:              c.cfg.LeaderElection.Lease,
		LeaderElectionNamespace:       c.namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &lease, RenewDeadline: &deadline, RetryPeriod: &retry,
		GracefulShutdownTimeout: &grace,
	})
}

// caches hold what is read and no more: a cluster's pods are many.
func (c *Controller) caches() cache.Options {
	o := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:     {Transform: reconcile.StripPod},
			&corev1.Service{}: {Transform: reconcile.StripService},
		},
	}
	if len(c.cfg.WatchNamespaces) > 0 {
		o.DefaultNamespaces = map[string]cache.Config{}
		for _, n := range c.cfg.WatchNamespaces {
			o.DefaultNamespaces[n] = cache.Config{}
		}
	}
	return o
}

// add gives a manager what runs in a session.
func (c *Controller) add(ctx context.Context, mgr ctrl.Manager) error {
	err := reconcile.Setup(ctx, mgr, reconcile.Config{
		Topic: c.topic, Fleet: c.fleet, WatchNamespaces: c.cfg.WatchNamespaces, Leads: c.tenure.leads, Began: c.began,
	})
	if err != nil {
		return err
	}
	if err := secrets.Setup(mgr, secrets.Config{
		Namespace: c.namespace, WatchNamespaces: c.cfg.WatchNamespaces, Names: c.secretNames(), EventsFrom: reconcile.Name,
	}); err != nil {
		return err
	}
	// The webhook reads namespaces of the cache: its informer is among those that are waited for.
	if _, err := mgr.GetCache().GetInformer(ctx, webhook.NamespaceOf("")); err != nil {
		return err
	}
	return mgr.Add(everywhere(func(ctx context.Context) error {
		c.cluster.set(mgr.GetCache(), mgr.GetAPIReader())
		c.synced.Store(true)
		c.waits.Set(waitsKubernetes, "")
		select {
		case <-mgr.Elected():
			c.log.Info("this replica writes")
		case <-ctx.Done():
			return nil
		}
		<-ctx.Done()
		return nil
	}))
}

func (c *Controller) secretNames() []string {
	var out []string
	for _, name := range []string{c.cfg.Secrets.Identity, c.cfg.Secrets.Kafka} {
		if name != "" {
			out = append(out, name)
		}
	}
	return out
}

// everywhere is a part that runs on every replica, once the caches are filled.
type everywhere func(ctx context.Context) error

// Start implements manager.Runnable.
func (f everywhere) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }
