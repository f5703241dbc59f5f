package webhook

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/controller/certs"
	"github.com/weirproxy/weir/internal/runner"
)

// Config says what is served. All is required but for Drain.
type Config struct {
	// Settings is the injector's file, followed while it runs.
	Settings string
	// Address is where to listen, tcp://host:port.
	Address string
	// Certificates of the server.
	Certificates certs.Config
	// Drain is how long reviews are answered after Run's context has ended, until nobody sends any more.
	Drain time.Duration
}

// Dependencies are what the webhook is given.
type Dependencies struct {
	// Client reads and writes what the certificates are kept in; without a cache.
	Client client.WithWatch
	// Cluster says what is around a pod.
	Cluster  Cluster
	Registry prometheus.Registerer
	Log      *zap.Logger
}

// Webhook is the injection of one replica. Make it with New and run it once; Ready is safe for concurrent use.
type Webhook struct {
	settings     *settings
	certificates *certs.Certificates
	server       server
	log          *zap.Logger
}

// New checks the configuration and reads the settings file, which may be wrong: then nothing is injected until it is
// right, and Ready says so. It connects to nothing.
func New(c Config, d Dependencies) (*Webhook, error) {
	if err := c.Certificates.Validate(); err != nil {
		return nil, err
	}
	s := follow(c.Settings, d.Log)
	metrics := NewMetrics(d.Registry)
	w := &Webhook{settings: s, log: d.Log, certificates: certs.New(c.Certificates, d.Client, d.Registry, d.Log)}
	w.server = server{
		address: c.Address, certificate: w.certificates.GetCertificate, log: d.Log,
		drained: func() <-chan time.Time { return time.After(c.Drain) },
		handler: NewHandler(s.engine, d.Cluster, metrics, d.Log),
	}
	return w, nil
}

// Run serves until ctx ends, and Config.Drain more. An error means that it cannot listen.
func (w *Webhook) Run(ctx context.Context) error {
	return runner.Run(ctx, 0,
		runner.Part{Name: "settings", Run: w.settings.Run},
		runner.Part{Name: "certificates", Run: w.certificates.Run},
		runner.Part{Name: "server", Run: w.server.Run})
}

// Ready reports whether reviews are answered, and what is amiss.
func (w *Webhook) Ready() (bool, []string) {
	ready, reasons := w.certificates.Ready()
	switch wrong := w.settings.problem(); {
	case w.settings.engine() == nil:
		return false, append(reasons, "no pod gets a sidecar: "+wrong)
	case wrong != "":
		reasons = append(reasons, "degraded: the last good settings are in force: "+wrong)
	}
	return ready, reasons
}
