package controller

import (
	"fmt"

	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/controller/certs"
	"github.com/weirproxy/weir/controller/webhook"
)

// injector is the webhook of this replica, which outlives sessions with kube-apiserver.
func (c *Controller) injector() (*webhook.Webhook, error) {
	i := c.cfg.Injection
	direct, err := client.NewWithWatch(c.rest, client.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return webhook.New(webhook.Config{
		Settings: i.Settings, Address: i.Address,
		Certificates: c.cfg.certificates(c.namespace),
		Drain:        c.cfg.Grace / 2,
	}, webhook.Dependencies{
		Client: direct, Cluster: webhook.NewReader(cached{&c.cluster}, live{&c.cluster}),
		Registry: c.registry, Log: c.log.Named("webhook"),
	})
}

// certificates of the webhook, whose Service is in namespace.
func (c Config) certificates(namespace string) certs.Config {
	from := c.Injection.Certificates
	return certs.Config{
		Mode: from.Mode, Directory: from.Directory, Namespace: namespace,
		Secret: from.Secret, Service: from.Service, Configuration: from.Configuration,
	}
}
