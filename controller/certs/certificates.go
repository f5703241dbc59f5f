package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/internal/log"
)

// Modes of Config.
const (
	SelfManaged = "SelfManaged"
	Files       = "Files"
)

// Config says whence the certificate comes.
type Config struct {
	// Mode is SelfManaged or Files.
	Mode string
	// Directory holds tls.crt and tls.key in mode Files.
	Directory string
	// Namespace is that of Secret and Service; Secret keeps authority and certificate, Service gives the
	// certificate its names, Configuration is the MutatingWebhookConfiguration that gets the authority. Of mode
	// SelfManaged.
	Namespace, Secret, Service, Configuration string
}

// Validate returns all that is wrong with c, joined, by the names of the settings.
func (c Config) Validate() error {
	missing := func(field, value, why string) error {
		if value != "" {
			return nil
		}
		return fmt.Errorf("injection.certificates.%s: is missing; %s", field, why)
	}
	switch c.Mode {
	case Files:
		return missing("directory", c.Directory, "name the directory with tls.crt and tls.key, or use mode "+SelfManaged)
	case SelfManaged:
		return errors.Join(missing("secret", c.Secret, "name the Secret to keep the certificate in"),
			missing("service", c.Service, "name the webhook's Service"),
			missing("configuration", c.Configuration, "name the MutatingWebhookConfiguration"))
	}
	return fmt.Errorf("injection.certificates.mode: %q is neither %s nor %s", c.Mode, SelfManaged, Files)
}

// names are those by which kube-apiserver may call the Service.
func (c Config) names() []string {
	host := c.Service + "." + c.Namespace + ".svc"
	return []string{host, host + ".cluster.local", c.Service + "." + c.Namespace, c.Service}
}

// lookEach is how often source and configuration are read where nothing says that they changed; lookGap is how
// often at most.
const (
	lookEach = time.Minute
	fileEach = 5 * time.Second
	lookGap  = time.Second
	lookTime = 20 * time.Second
)

// material is what a source yields.
type material struct {
	pair    *tls.Certificate
	trusted []byte // PEM for kube-apiserver; nil: others tell it
	renewed bool   // by this very load
}

// source yields the newest certificate. One goroutine asks it.
type source interface {
	load(ctx context.Context, now time.Time) (material, error)
}

// Certificates serves the newest certificate and keeps it so. Make it with New and run it once;
// GetCertificate and Ready are safe for concurrent use.
type Certificates struct {
	config  Config
	client  client.WithWatch
	source  source
	bundle  *bundle // nil: others tell kube-apiserver whom to trust
	log     *zap.Logger
	now     func() time.Time
	current atomic.Pointer[tls.Certificate]
	changed chan struct{}
	metrics metrics

	mu     sync.Mutex
	wrongs [2]string // what is wrong with the source and with the bundle, as last seen
}

// New makes the certificates of a valid configuration. The client is live, without a cache.
func New(c Config, live client.WithWatch, r prometheus.Registerer, logger *zap.Logger) *Certificates {
	out := &Certificates{config: c, client: live, log: logger, now: time.Now, changed: make(chan struct{}, 1), metrics: newMetrics(r)}
	if c.Mode == Files {
		out.source = files{c.Directory}
		return out
	}
	out.source = &secret{client: live, key: client.ObjectKey{Namespace: c.Namespace, Name: c.Secret}, names: c.names(), log: logger}
	out.bundle = &bundle{live, c.Configuration}
	return out
}

// GetCertificate is what a tls.Config asks for each connection; it fails until there is one.
func (c *Certificates) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := c.current.Load(); pair != nil {
		return pair, nil
	}
	return nil, errors.New("the webhook has no certificate yet")
}

// Ready reports whether there is a certificate, and what is amiss.
func (c *Certificates) Ready() (ready bool, reasons []string) {
	pair := c.current.Load()
	if pair == nil {
		reasons = append(reasons, "no certificate yet")
	} else if left := pair.Leaf.NotAfter.Sub(c.now()); left < pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)/6 {
		reasons = append(reasons, fmt.Sprintf("degraded: the certificate ends at %s and is not renewed", pair.Leaf.NotAfter.UTC().Format(time.RFC3339)))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, wrong := range c.wrongs {
		if wrong != "" {
			reasons = append(reasons, wrong)
		}
	}
	return pair != nil, reasons
}

// Run keeps the certificate until ctx ends. It never returns an error: what is wrong is said, and tried again.
func (c *Certificates) Run(ctx context.Context) error {
	var watches sync.WaitGroup
	defer watches.Wait()
	each := fileEach
	if c.bundle != nil {
		each = lookEach
		watches.Go(func() {
			c.watch(ctx, &corev1.SecretList{}, client.InNamespace(c.config.Namespace), client.MatchingFields{"metadata.name": c.config.Secret})
		})
		watches.Go(func() {
			c.watch(ctx, &admissionregistrationv1.MutatingWebhookConfigurationList{}, client.MatchingFields{"metadata.name": c.config.Configuration})
		})
	}
	for {
		c.check(ctx, c.now())
		if !wait(ctx, c.changed, each) || !wait(ctx, nil, lookGap) {
			return nil
		}
	}
}

// wait returns with the next change or after a while; false: ctx has ended.
func wait(ctx context.Context, changed <-chan struct{}, while time.Duration) bool {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timer.C:
	}
	return true
}

// check takes up what the source holds at now and tells kube-apiserver.
func (c *Certificates) check(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	m, err := c.source.load(ctx, now)
	if err == nil && m.pair.Leaf == nil {
		m.pair.Leaf, err = x509.ParseCertificate(m.pair.Certificate[0])
	}
	c.wrong(ctx, 0, err)
	if err != nil {
		return // the last good one is served on
	}
	c.current.Store(m.pair)
	c.metrics.certificate(m)
	if c.bundle == nil || m.trusted == nil {
		return
	}
	wrote, err := c.bundle.ensure(ctx, m.trusted)
	c.wrong(ctx, 1, err)
	if wrote {
		c.log.Info("kube-apiserver is told whom to trust for the webhook", zap.String(log.Object, "MutatingWebhookConfiguration "+c.config.Configuration))
	}
}

// wrong notes what is wrong with a part, and logs it once a change.
func (c *Certificates) wrong(ctx context.Context, part int, err error) {
	if err != nil && ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return // it ends
	}
	said := ""
	if err != nil {
		said = say(err)
	}
	c.mu.Lock()
	news := said != c.wrongs[part]
	c.wrongs[part] = said
	c.mu.Unlock()
	if news && said != "" {
		c.log.Error("the webhook's certificate cannot be kept; it is tried again", zap.String(log.Reason, said))
	}
}
