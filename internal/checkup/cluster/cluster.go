package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"

	"github.com/weirproxy/weir/internal/checkup"
)

// Config says which cluster, and where in it weir is.
type Config struct {
	// Client of the cluster; nil: all is skipped.
	Client dynamic.Interface
	// Namespace is the installation's, IstioNamespace istiod's.
	Namespace, IstioNamespace string
	// IdentitySecret and CertificateSecret are the names of the Secrets of the identity key and of the injector's certificate.
	IdentitySecret, CertificateSecret string
	// Version is this program's; "" where it is not known.
	Version string
	// Fingerprint is that of the installation's identity key, false where it is not known. nil: it is not.
	Fingerprint func(context.Context) (uint32, bool)
	// Now is the present time, of this machine; nil: the clock's.
	Now func() time.Time
}

// The objects of an installation, as the chart names them.
const (
	definitionName = "quotapolicies.weirproxy.dev"
	controllerName = "weir-controller"
	aggregatorName = "weir-aggregator"
	webhookName    = "weir-webhook"
	injectorName   = "weir-injector"
)

// Checks are the checks of one cluster.
type Checks struct {
	kubernetes
	cfg  Config
	down bool // the server did not answer

	asking *asking   // once read
	pods   *podFacts // once read
}

// New returns the checks of a cluster.
func New(cfg Config) *Checks {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Fingerprint == nil {
		cfg.Fingerprint = func(context.Context) (uint32, bool) { return 0, false }
	}
	return &Checks{kubernetes: kubernetes{cfg.Client}, cfg: cfg}
}

// All are the checks by name, in their order.
func (c *Checks) All() []checkup.Named {
	all := []checkup.Named{{Name: "kubernetes.reachable", Check: checkup.Func(c.reachable)}}
	if c.cfg.Client == nil {
		return all // one line says it
	}
	for _, n := range []struct {
		name string
		f    func(context.Context) []checkup.Finding
	}{
		{"kubernetes.definition", c.definition},
		{"kubernetes.controller", c.controller},
		{"kubernetes.aggregators", c.aggregators},
		{"kubernetes.versions", c.versions},
		{"kubernetes.webhook", c.webhook},
		{"kubernetes.injection", c.injection},
		{"kubernetes.identity", c.identity},
		{"kubernetes.policies", c.policies},
		{"mesh.istio", c.istio},
		{"mesh.envoy-gateway", c.envoyGateway},
	} {
		all = append(all, checkup.Named{Name: n.name, Check: c.up(n.f)})
	}
	return all
}

// up skips a check where the server does not answer.
func (c *Checks) up(f func(context.Context) []checkup.Finding) checkup.Check {
	return checkup.Func(func(ctx context.Context) []checkup.Finding {
		if c.down {
			return []checkup.Finding{checkup.Skip("", "kube-apiserver does not answer")}
		}
		return f(ctx)
	})
}

// reachable is the check kubernetes.reachable: any answer will do.
func (c *Checks) reachable(ctx context.Context) []checkup.Finding {
	if c.cfg.Client == nil {
		return []checkup.Finding{checkup.Skip("name it, if there is one: --kubeconfig FILE, or $KUBECONFIG", "no cluster is named")}
	}
	_, err := object[definition](ctx, c.kubernetes, definitions(), "", definitionName)
	c.down = !answered(err)
	return judgeReachable(err)
}

func judgeReachable(err error) []checkup.Finding {
	switch {
	case answered(err):
		return []checkup.Finding{checkup.Okay("kube-apiserver answers")}
	case apierrors.IsUnauthorized(err):
		return []checkup.Finding{checkup.Fail("log in anew, or name another kubeconfig or context", "kube-apiserver does not know this user: %v", err)}
	}
	return []checkup.Finding{checkup.Fail("is it the right kubeconfig and context, and may this machine reach the server?", "kube-apiserver does not answer: %v", err)}
}
