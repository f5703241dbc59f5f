package controller

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weirproxy/weir/controller/certs"
	"github.com/weirproxy/weir/controller/webhook"
	"github.com/weirproxy/weir/internal/listen"
)

// Rights to ask kube-apiserver who collects metrics, and whether they may.
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// runMetrics serves /metrics until ctx ends: weir's own, controller-runtime's and Go's.
func (c *Controller) runMetrics(ctx context.Context) error {
	if err := metrics.Registry.Register(c.registry); err != nil { // controller-runtime has one a process
		return fmt.Errorf("register metrics: %w", err)
	}
	defer metrics.Registry.Unregister(c.registry)
	address, err := listen.Parse(c.cfg.Metrics.Address)
	if err != nil {
		return err
	}
	o := metricsserver.Options{BindAddress: address.Path}
	if c.cfg.Metrics.Authorize {
		o.SecureServing, o.FilterProvider = true, filters.WithAuthenticationAndAuthorization
	}
	http, err := rest.HTTPClientFor(c.rest)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	server, err := metricsserver.NewServer(o, c.rest, http)
	if err != nil {
		return err
	}
	return server.Start(logr.NewContext(ctx, zapr.NewLogger(c.log.Named("metrics"))))
}

// RegisterMetrics registers what weir-controller counts itself, with nothing behind it: for the reference page.
func RegisterMetrics(r prometheus.Registerer) {
	newWaits(zap.NewNop(), r)
	webhook.NewMetrics(r)
	certs.New(certs.Config{}, nil, r, zap.NewNop())
}
