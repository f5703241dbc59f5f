package render

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

const gatewayGroup = "gateway.envoyproxy.io"

type (
	backend struct {
		Endpoints []backendEndpoint `yaml:"endpoints"`
	}
	backendEndpoint struct {
		Unix unixEndpoint `yaml:"unix"`
	}
	unixEndpoint struct {
		Path string `yaml:"path"`
	}
	securityPolicy struct {
		TargetRefs []reference `yaml:"targetRefs"`
		ExtAuth    extAuth     `yaml:"extAuth"`
	}
	extAuth struct {
		GRPC              grpcService        `yaml:"grpc"`
		Timeout           string             `yaml:"timeout"`
		FailOpen          bool               `yaml:"failOpen"`
		StatusOnError     int                `yaml:"statusOnError,omitempty"`
		HeadersToExtAuth  []string           `yaml:"headersToExtAuth,omitempty"`
		ContextExtensions []contextExtension `yaml:"contextExtensions"`
	}
	grpcService struct {
		BackendRefs     []reference     `yaml:"backendRefs"`
		BackendSettings backendSettings `yaml:"backendSettings"`
	}
	backendSettings struct {
		Timeout        backendTimeout `yaml:"timeout"`
		CircuitBreaker circuitBreaker `yaml:"circuitBreaker"`
	}
	backendTimeout struct {
		TCP tcpPool `yaml:"tcp"`
	}
	circuitBreaker struct {
		MaxParallelRequests int `yaml:"maxParallelRequests"`
		MaxPendingRequests  int `yaml:"maxPendingRequests"`
	}
	contextExtension struct {
		Name  string `yaml:"name"`
		Type  string `yaml:"type"`
		Value string `yaml:"value"`
	}
	envoyProxy struct {
		FilterOrder []filterPosition `yaml:"filterOrder"`
		Provider    proxyProvider    `yaml:"provider"`
	}
	filterPosition struct {
		Name  string `yaml:"name"`
		After string `yaml:"after"`
	}
	proxyProvider struct {
		Type       string `yaml:"type"`
		Kubernetes struct {
			EnvoyDeployment proxyDeployment `yaml:"envoyDeployment"`
		} `yaml:"kubernetes"`
	}
	proxyDeployment struct {
		Pod struct {
			Volumes []volume `yaml:"volumes"`
		} `yaml:"pod"`
		Container struct {
			VolumeMounts []volumeMount `yaml:"volumeMounts"`
		} `yaml:"container"`
	}
	volume struct {
		Name     string   `yaml:"name"`
		EmptyDir emptyDir `yaml:"emptyDir"`
	}
	emptyDir struct {
		Medium    string `yaml:"medium"`
		SizeLimit string `yaml:"sizeLimit"`
	}
	volumeMount struct {
		Name      string `yaml:"name"`
		MountPath string `yaml:"mountPath"`
	}
)

var (
	errSocket        = errors.New("Envoy Gateway takes no loopback address as a Backend: let the sidecar listen on a unix socket, --check unix:///run/weir/check.sock")
	errGatewayClaims = errors.New("a policy takes the client from a token's claim, which Envoy Gateway's extAuth does not send: have SecurityPolicy's jwt put it into a header (claimToHeaders), and the policy read that")
)

// EnvoyGateway is what has Envoy Gateway's proxies ask the sidecar: the socket as a Backend, a SecurityPolicy for each
// target, and an EnvoyProxy for the order of filters and the volume.
func EnvoyGateway(o Options) ([]byte, error) {
	m, err := newModel(o)
	if err != nil {
		return nil, err
	}
	switch {
	case !m.ofGateway():
		return nil, fmt.Errorf("target %s: Envoy Gateway asks for each route or Gateway: name an HTTPRoute, a GRPCRoute or a Gateway", m.targets[0])
	case m.Check.Network != "unix":
		return nil, errSocket
	case m.Needs.Claims:
		return nil, errGatewayClaims
	}
	namespace := m.namespace()
	if m.Gateway != "" {
		if namespace, _, err = m.gatewayName(); err != nil {
			return nil, err
		}
	}
	const version = gatewayGroup + "/v1alpha1"
	at := meta{"weir", m.namespace()}
	docs := []document{
		{m.title("Envoy Gateway's proxy") + gatewayTitle, object{version, "Backend", at, backend{[]backendEndpoint{{unixEndpoint{m.Check.Path}}}}}},
	}
	for i, t := range m.targets {
		docs = append(docs, document{"", object{version, "SecurityPolicy", meta{m.policyName(i), t.namespace}, m.security(t)}})
	}
	docs = append(docs, document{proxyTitle, object{version, "EnvoyProxy", meta{"weir", namespace}, m.proxy()}})
	return documents(m.notes(), docs...)
}

const (
	gatewayTitle = "\nEnvoy Gateway must allow Backends: extensionApis.enableBackend in its own configuration.\n" +
		"It cannot send values that are no UTF-8 (they are replaced) or claims of tokens, nor name its statistics."
	proxyTitle = "A Gateway, or its GatewayClass, names this in parametersRef; if it has an EnvoyProxy already, put these fields there. The sidecar is one more container of the proxy's pod, which mounts the same volume."
)

// policyName is weir-NAME, with the kind behind it where another target has the name.
func (m *model) policyName(i int) string {
	name := "weir-" + m.targets[i].name
	for _, t := range m.targets[:i] {
		if t.name == m.targets[i].name {
			return name + "-" + strings.ToLower(m.targets[i].kind)
		}
	}
	return name
}

func (m *model) security(t target) securityPolicy {
	a := extAuth{
		GRPC: grpcService{
			BackendRefs:     []reference{{gatewayGroup, "Backend", "weir"}},
			BackendSettings: backendSettings{backendTimeout{tcpPool{milliseconds(m.Timeout)}}, circuitBreaker{inFlight, inFlight}},
		},
		Timeout:           milliseconds(m.Timeout),
		FailOpen:          !m.Needs.FailClosed,
		ContextExtensions: []contextExtension{{targetExtension, "Value", t.String()}},
	}
	if m.Needs.FailClosed {
		a.StatusOnError = away
	}
	if m.Needs.Known {
		a.HeadersToExtAuth = m.Needs.allowed()
	}
	return securityPolicy{[]reference{{gatewayAPI, t.kind, t.name}}, a}
}

func (m *model) proxy() envoyProxy {
	p := envoyProxy{Provider: proxyProvider{Type: "Kubernetes"}}
	// In the order in which Envoy Gateway runs them: where several are there, the last one counts.
	for _, before := range []string{"api_key_auth", "basic_auth", "oauth2", "jwt_authn", "rbac"} {
		p.FilterOrder = append(p.FilterOrder, filterPosition{filterName, "envoy.filters.http." + before})
	}
	d := &p.Provider.Kubernetes.EnvoyDeployment
	d.Pod.Volumes = []volume{{"weir", emptyDir{"Memory", "1Mi"}}}
	d.Container.VolumeMounts = []volumeMount{{"weir", path.Dir(m.Check.Path)}}
	return p
}

func (m *model) gatewayNotes() map[string]string {
	return map[string]string{
		"SecurityPolicy/spec/targetRefs": "A route's SecurityPolicy stands in place of its Gateway's: what authenticates belongs here too.",
		"grpc/backendSettings":           "Checks in flight: the default, 1024, is a busy Envoy's.",
		"extAuth/timeout":                "Envoy Gateway's default is 10 s",
		"extAuth/failOpen":               m.failureNote() + " Envoy Gateway passes all, too, where it takes this for invalid.",
		"extAuth/statusOnError":          "else 403, which clients take for a verdict on them",
		"extAuth/headersToExtAuth":       "What the policies read, and what the form of a refusal depends on; no other header leaves Envoy. What is not listed does not exist for weir: render anew before a policy reads another.",
		"extAuth/contextExtensions":      m.namedNote(),
		"spec/filterOrder":               "By itself Envoy Gateway asks before it authenticates: strangers would use up a client's quota. Of these filters those that are there count, the last one in the end.",
		"pod/volumes":                    "Holds the socket. Where weir injects the sidecar into the proxy's pod, leave this out: it mounts its own.",
	}
}
