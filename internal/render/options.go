package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/internal/listen"
	"github.com/weirproxy/weir/internal/policy"
)

const (
	// DefaultTimeout is how long a request waits for the sidecar's answer, which takes well under 1 ms: longer than one
	// period of the kernel's CPU quota (100 ms), in which a throttled sidecar stands still.
	DefaultTimeout = 150 * time.Millisecond
	// maxTimeout is where a wait for a quota is worse than none.
	maxTimeout = 10 * time.Second
	// maxTargets is how many a sidecar takes.
	maxTargets = 256
)

// Options say what a configuration is for. They are only read.
type Options struct {
	// Targets are canonical names, namespace/Kind/name, at least one, which share one Envoy. Either all are of a pod
	// (Service, Deployment, …), or all of a gateway (Gateway, HTTPRoute, GRPCRoute): those are named in each check.
	Targets []string
	// Check is where the sidecar listens.
	Check listen.Address
	// Needs is what the targets' policies need of the filter.
	Needs Needs
	// Timeout of a check and of connecting to the sidecar. 0: DefaultTimeout.
	Timeout time.Duration
	// MarkUnchecked adds x-envoy-auth-failure-mode-allowed to requests that pass because the sidecar was away.
	MarkUnchecked bool

	// Listener, Service and Admin, host:port, are a plain Envoy's own address, where it sends requests on, and its
	// admin server's.
	Listener, Service, Admin string
	// AccessLog has a plain Envoy write a line a request, with which limit refused it.
	AccessLog bool
	// Selector are the labels of the pods, for Istio. Empty: app of the first target's name.
	Selector map[string]string
	// Gateway, namespace/name or name, is the Gateway of the targets' routes, for Istio and Envoy Gateway.
	Gateway string
	// RouteRules is how many rules each of the routes has, for Istio. 0: 1.
	RouteRules int
}

// Needs is what policies need of the filter. The zero value is for policies nobody has seen: all headers are sent, and
// requests pass while the sidecar is away.
type Needs struct {
	// Known: the rest was taken from policies.
	Known bool
	// Headers that the policies read, in lower case, each once.
	Headers []string
	// Claims of verified tokens are read.
	Claims bool
	// FailClosed refuses requests while the sidecar is away.
	FailClosed bool
}

// NeedsOf returns what the policies need together.
func NeedsOf(policies []*policy.Policy) Needs {
	reads := policy.ReadsOf(policies)
	return Needs{Known: true, Headers: reads.Headers, Claims: reads.Claims, FailClosed: policy.FailsClosed(policies)}
}

// allowed are the headers to send: what the policies read, and what the form of a refusal depends on.
func (n Needs) allowed() []string {
	names := append([]string{"content-type", "origin"}, n.Headers...)
	slices.Sort(names)
	return slices.Compact(names)
}

// target is a canonical name taken apart.
type target struct{ namespace, kind, name string }

func (t target) String() string { return policy.TargetName(t.namespace, t.kind, t.name) }

// ofGateway reports whether many such targets share one Envoy, so that each check has to name its own.
func (t target) ofGateway() bool {
	switch t.kind {
	case "Gateway", "HTTPRoute", "GRPCRoute":
		return true
	default:
		return false
	}
}

// model is options checked, with the defaults in.
type model struct {
	Options
	targets []target
}

func newModel(o Options) (*model, error) {
	m := &model{Options: o}
	if m.Timeout == 0 {
		m.Timeout = DefaultTimeout
	}
	if m.Timeout < time.Millisecond || m.Timeout > maxTimeout || m.Timeout%time.Millisecond != 0 {
		return nil, fmt.Errorf("time-out %v: want whole milliseconds, from 1ms to %v", m.Timeout, maxTimeout)
	}
	if n := len(o.Targets); n == 0 || n > maxTargets {
		return nil, fmt.Errorf("%d targets: want one at least, and at most %d", n, maxTargets)
	}
	for _, name := range o.Targets {
		namespace, kind, short, err := policy.ParseTarget(name)
		if err != nil {
			return nil, err
		}
		if t := (target{namespace, kind, short}); !slices.Contains(m.targets, t) {
			m.targets = append(m.targets, t)
		}
	}
	return m, m.oneEnvoy()
}

var errMixed = errors.New("targets of a pod and of a gateway are not behind one Envoy: render them apart")

// oneEnvoy checks that one Envoy can have all targets.
func (m *model) oneEnvoy() error {
	first := m.targets[0]
	for _, t := range m.targets[1:] {
		if t.ofGateway() != first.ofGateway() {
			return errMixed
		}
		if t.namespace != first.namespace {
			return fmt.Errorf("targets %s and %s are in two namespaces: render them apart", first, t)
		}
	}
	return nil
}

// distinct checks that names tell the targets apart, whatever their kinds.
func (m *model) distinct() error {
	names := map[string]target{}
	for _, t := range m.targets {
		if other, ok := names[t.name]; ok {
			return fmt.Errorf("targets %s and %s have one name, by which their routes are told apart: render them apart", other, t)
		}
		names[t.name] = t
	}
	return nil
}

func (m *model) ofGateway() bool { return m.targets[0].ofGateway() }

func (m *model) namespace() string { return m.targets[0].namespace }

// name is of the objects that are made: the first target's, with weir before it.
func (m *model) name() string { return "weir-" + m.targets[0].name }

// gatewayName is the Gateway of the targets and its namespace, or an error that asks for it.
func (m *model) gatewayName() (namespace, name string, err error) {
	if t := m.targets[0]; m.Gateway == "" && t.kind == "Gateway" {
		return t.namespace, t.name, nil
	}
	if m.Gateway == "" {
		return "", "", fmt.Errorf("target %s: which Gateway does the route belong to? Say --gateway NAMESPACE/NAME", m.targets[0])
	}
	namespace, name, ok := strings.Cut(m.Gateway, "/")
	if !ok {
		namespace, name = m.namespace(), m.Gateway
	}
	if _, _, _, err := policy.ParseTarget(policy.TargetName(namespace, "Gateway", name)); err != nil {
		return "", "", fmt.Errorf("gateway %q: want NAMESPACE/NAME", m.Gateway)
	}
	return namespace, name, nil
}
