package controller

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weirproxy/weir/api/config"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/identitykey"
	"github.com/weirproxy/weir/internal/listen"
)

// Config is what a controller is told. The zero value of each field that is not required stands for its
// default.
type Config struct {
	// Namespace is the controller's own. Empty: that of its service account.
	Namespace string
	// WatchNamespaces bound what is looked at; empty: all namespaces.
	WatchNamespaces []string
	// Kubeconfig is a file; empty: REST, or as a pod in the cluster.
	Kubeconfig string
	// REST, if set, is how to reach kube-apiserver.
	REST *rest.Config
	// IdentityKeyFile holds the installation's identity key, 32 bytes. Required unless IdentityKey is set.
	IdentityKeyFile string
	IdentityKey     []byte
	Kafka           bus.Config
	Topics          bus.Topics
	LeaderElection  config.LeaderElection
	// Lease is how long a leader that fell silent keeps the others waiting. Default: 15 s; it gives up
	// itself after two thirds of that.
	Lease     time.Duration
	Metrics   config.ControllerMetrics
	Injection config.Injection
	Secrets   config.Secrets
	// Admin is the program's own HTTP server; the zero value: none.
	Admin admin.Config
	// Grace bounds what Run does after its context has ended. Default: 5 s.
	Grace time.Duration
}

// WithDefaults returns c with every unset value at its default.
func (c Config) WithDefaults() Config {
	if c.Lease == 0 {
		c.Lease = 15 * time.Second
	}
	if c.Grace == 0 {
		c.Grace = 5 * time.Second
	}
	c.Kafka = c.Kafka.WithDefaults()
	c.Topics = c.Topics.WithDefaults()
	return c
}

// Validate returns all that is wrong with c, joined.
func (c Config) Validate() error {
	c = c.WithDefaults()
	errs := []error{c.Kafka.Validate(), c.validateInjection(), tcp("metrics.address", c.Metrics.Address)}
	if c.LeaderElection.Enabled {
		errs = append(errs, name("leaderElection.lease", c.LeaderElection.Lease))
	}
	for i, ns := range c.WatchNamespaces {
		errs = append(errs, name(fmt.Sprintf("watchNamespaces[%d]", i), ns))
		if slices.Index(c.WatchNamespaces, ns) != i {
			errs = append(errs, fmt.Errorf("watchNamespaces[%d]: %q is named twice", i, ns))
		}
	}
	for field, secret := range map[string]string{
		"namespace": c.Namespace, "secrets.identity": c.Secrets.Identity, "secrets.kafka": c.Secrets.Kafka,
	} {
		if secret != "" {
			errs = append(errs, name(field, secret))
		}
	}
	if len(c.IdentityKey) == 0 && c.IdentityKeyFile == "" {
		errs = append(errs, errors.New("identityKeyFile: is missing; `weir key` makes a key, and every program of the installation has the same"))
	}
	return errors.Join(errs...)
}

func (c Config) validateInjection() error {
	i := c.Injection
	if !i.Enabled {
		return nil
	}
	errs := []error{tcp("injection.address", i.Address), c.certificates(c.Namespace).Validate()}
	if i.Address == "" {
		errs = append(errs, errors.New("injection.address: is missing; write tcp://0.0.0.0:9443"))
	}
	if i.Settings == "" {
		errs = append(errs, errors.New("injection.settings: is missing; name the file that `weir inject --settings` reads, or set injection.enabled to false"))
	}
	return errors.Join(errs...)
}

// tcp checks an address that TLS is served at; an empty one is none.
func tcp(field, address string) error {
	if address == "" {
		return nil
	}
	a, err := listen.Parse(address)
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	if a.Network != "tcp" {
		return fmt.Errorf("%s: %q is no tcp://host:port", field, address)
	}
	return nil
}

// name checks the name of an object.
func name(field, value string) error {
	if wrong := validation.IsDNS1123Subdomain(value); len(wrong) > 0 {
		return fmt.Errorf("%s: %q is no name: %s", field, value, strings.Join(wrong, "; "))
	}
	return nil
}

func (c Config) keys() (wirev1.Keys, error) {
	if len(c.IdentityKey) > 0 {
		return wirev1.NewKeys(c.IdentityKey)
	}
	return identitykey.Read(c.IdentityKeyFile)
}

const serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// namespace is the controller's own.
func (c Config) namespace() (string, error) {
	if c.Namespace != "" {
		return c.Namespace, nil
	}
	text, err := os.ReadFile(serviceAccountNamespace)
	if err != nil {
		return "", fmt.Errorf("namespace: is missing, and no service account says it: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// rest is how to reach kube-apiserver. The client's own limit is off unless somebody set one: at its default of five
// requests a second the webhook's reads would fail when many pods come at once, and kube-apiserver has its own
// fairness.
func (c Config) rest() (*rest.Config, error) {
	out, err := c.reach()
	if err == nil && out.QPS == 0 {
		out.QPS = -1
	}
	return out, err
}

func (c Config) reach() (*rest.Config, error) {
	switch {
	case c.REST != nil:
		return rest.CopyConfig(c.REST), nil
	case c.Kubeconfig != "":
		out, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		return out, nil
	}
	out, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: is missing, and this is no pod of a cluster: %w", err)
	}
	return out, nil
}
