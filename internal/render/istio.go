package render

import (
	"errors"
	"fmt"
	"strconv"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"go.yaml.in/yaml/v3"
)

const (
	// checkHost is the sidecar's name in the mesh, which nobody resolves.
	checkHost   = "check.weir.internal"
	defaultPort = 9191
	gatewayAPI  = "gateway.networking.k8s.io"
)

// object is a Kubernetes object as kubectl takes it.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   meta   `yaml:"metadata"`
	Spec       any    `yaml:"spec"`
}

type meta struct {
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace"`
}

// reference names an object in the namespace of what refers to it.
type reference struct {
	Group string `yaml:"group"`
	Kind  string `yaml:"kind"`
	Name  string `yaml:"name"`
}

type (
	serviceEntry struct {
		Hosts      []string   `yaml:"hosts"`
		ExportTo   []string   `yaml:"exportTo"`
		Location   string     `yaml:"location"`
		Ports      []port     `yaml:"ports"`
		Resolution string     `yaml:"resolution"`
		Endpoints  []endpoint `yaml:"endpoints"`
	}
	port struct {
		Number   uint32 `yaml:"number"`
		Name     string `yaml:"name"`
		Protocol string `yaml:"protocol"`
	}
	endpoint struct {
		Address string `yaml:"address"`
	}
	destinationRule struct {
		Host          string        `yaml:"host"`
		ExportTo      []string      `yaml:"exportTo"`
		TrafficPolicy trafficPolicy `yaml:"trafficPolicy"`
	}
	trafficPolicy struct {
		TLS            tlsMode        `yaml:"tls"`
		ConnectionPool connectionPool `yaml:"connectionPool"`
	}
	tlsMode struct {
		Mode string `yaml:"mode"`
	}
	connectionPool struct {
		TCP tcpPool `yaml:"tcp"`
	}
	tcpPool struct {
		ConnectTimeout string `yaml:"connectTimeout"`
	}
	authorizationPolicy struct {
		Selector   *matchLabels `yaml:"selector,omitempty"`
		TargetRefs []reference  `yaml:"targetRefs,omitempty"`
		Action     string       `yaml:"action"`
		Provider   named        `yaml:"provider"`
		Rules      []struct{}   `yaml:"rules"`
	}
	matchLabels struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	named struct {
		Name string `yaml:"name"`
	}
	meshValues struct {
		MeshConfig meshConfig `yaml:"meshConfig"`
	}
	meshConfig struct {
		ExtensionProviders []provider `yaml:"extensionProviders"`
	}
	provider struct {
		Name              string       `yaml:"name"`
		EnvoyExtAuthzGrpc grpcProvider `yaml:"envoyExtAuthzGrpc"`
	}
	grpcProvider struct {
		Service       string `yaml:"service"`
		Port          uint32 `yaml:"port"`
		Timeout       string `yaml:"timeout"`
		FailOpen      bool   `yaml:"failOpen"`
		StatusOnError string `yaml:"statusOnError,omitempty"`
	}
)

var errClaims = errors.New("a policy takes the client from a token's claim, which Istio's CUSTOM action does not send: use weir render istio-envoyfilter")

// custom is a model that Istio's CUSTOM action can express.
func custom(o Options) (*model, error) {
	m, err := newModel(o)
	if err != nil {
		return nil, err
	}
	if m.Needs.Claims {
		return nil, errClaims
	}
	if t := m.targets[0]; m.ofGateway() && (t.kind != "Gateway" || len(m.targets) > 1) {
		return nil, fmt.Errorf("target %s: Istio's CUSTOM action cannot name the target of a request: use weir render istio-envoyfilter", t)
	}
	return m, nil
}

// IstioMesh is the part of the mesh's configuration that declares the sidecar as an authorizer, as values of istiod's chart.
func IstioMesh(o Options) ([]byte, error) {
	m, err := custom(o)
	if err != nil {
		return nil, err
	}
	port, _, err := m.meshAddress()
	if err != nil {
		return nil, err
	}
	p := grpcProvider{
		Service: m.namespace() + "/" + checkHost, Port: port,
		Timeout: seconds(m.Timeout), FailOpen: !m.Needs.FailClosed,
	}
	if m.Needs.FailClosed {
		p.StatusOnError = strconv.Itoa(away)
	}
	return documents(m.notes(), document{
		title: meshTitle,
		body:  meshValues{meshConfig{[]provider{{m.providerName(), p}}}},
	})
}

// Istio is what belongs beside IstioMesh in the targets' namespace.
func Istio(o Options) ([]byte, error) {
	m, err := custom(o)
	if err != nil {
		return nil, err
	}
	number, address, err := m.meshAddress()
	if err != nil {
		return nil, err
	}
	entry := serviceEntry{
		Hosts: []string{checkHost}, ExportTo: []string{"."}, Location: "MESH_EXTERNAL",
		Ports:      []port{{number, "grpc", "GRPC"}},
		Resolution: "STATIC", Endpoints: []endpoint{{address}},
	}
	rule := destinationRule{
		Host: checkHost, ExportTo: []string{"."},
		TrafficPolicy: trafficPolicy{tlsMode{"DISABLE"}, connectionPool{tcpPool{seconds(m.Timeout)}}},
	}
	check := authorizationPolicy{Action: "CUSTOM", Provider: named{m.providerName()}, Rules: []struct{}{{}}}
	if m.ofGateway() {
		check.TargetRefs = []reference{{gatewayAPI, "Gateway", m.targets[0].name}}
	} else {
		check.Selector = &matchLabels{m.labels()}
	}
	at := meta{"weir", m.namespace()}
	return documents(
		m.notes(),
		document{m.title("Istio's own proxy") + customTitle, object{"networking.istio.io/v1", "ServiceEntry", at, entry}},
		document{"", object{"networking.istio.io/v1", "DestinationRule", at, rule}},
		document{"", object{"security.istio.io/v1", "AuthorizationPolicy", meta{m.name(), m.namespace()}, check}},
	)
}

const (
	meshTitle = "Istio's mesh configuration, as values of the chart istiod (or below the key mesh of ConfigMap istio, without the first line).\n" +
		"A list is replaced, not merged: keep the providers that you have."
	customTitle = "\nThe mesh must know the provider first: weir render istio --mesh-config, with the same flags; time-out and failure mode are there.\n" +
		"CUSTOM cannot say which headers are sent (all are), nor send values that are no UTF-8 (they are replaced) or claims of tokens, " +
		"nor name its statistics, nor come after Istio's checks of tokens. weir render istio-envoyfilter can."
)

func (m *model) providerName() string { return "weir-" + m.namespace() }

// labels are those of the pods that the targets select.
func (m *model) labels() map[string]string {
	if len(m.Selector) > 0 {
		return m.Selector
	}
	return map[string]string{"app": m.targets[0].name}
}

// meshAddress is the sidecar's port and address as a ServiceEntry has them.
func (m *model) meshAddress() (port uint32, address string, err error) {
	if m.Check.Network == "unix" {
		return defaultPort, "unix://" + m.Check.Path, nil
	}
	at, err := socketAddress(m.Check.Path)
	if err != nil {
		return 0, "", err
	}
	s := at.GetSocketAddress()
	return s.GetPortValue(), s.GetAddress(), nil
}

type (
	envoyFilter struct {
		WorkloadSelector *workloadLabels `yaml:"workloadSelector,omitempty"`
		TargetRefs       []reference     `yaml:"targetRefs,omitempty"`
		ConfigPatches    []configPatch   `yaml:"configPatches"`
	}
	workloadLabels struct {
		Labels map[string]string `yaml:"labels"`
	}
	configPatch struct {
		ApplyTo string     `yaml:"applyTo"`
		Match   patchMatch `yaml:"match"`
		Patch   patch      `yaml:"patch"`
	}
	patchMatch struct {
		Context            string         `yaml:"context"`
		Listener           *listenerMatch `yaml:"listener,omitempty"`
		RouteConfiguration *routesMatch   `yaml:"routeConfiguration,omitempty"`
	}
	listenerMatch struct {
		FilterChain struct {
			Filter filterMatch `yaml:"filter"`
		} `yaml:"filterChain"`
	}
	filterMatch struct {
		Name      string `yaml:"name"`
		SubFilter named  `yaml:"subFilter"`
	}
	routesMatch struct {
		Vhost struct {
			Route named `yaml:"route"`
		} `yaml:"vhost"`
	}
	patch struct {
		Operation string     `yaml:"operation"`
		Value     *yaml.Node `yaml:"value"`
	}
)

// IstioEnvoyFilter puts the filter and the cluster into Istio's proxies, for a unix socket and what CUSTOM cannot say.
func IstioEnvoyFilter(o Options) ([]byte, error) {
	m, err := newModel(o)
	if err != nil {
		return nil, err
	}
	filter := envoyFilter{}
	namespace, context := m.namespace(), "SIDECAR_INBOUND"
	if m.ofGateway() {
		var gateway string
		if namespace, gateway, err = m.gatewayName(); err != nil {
			return nil, err
		}
		if err := m.distinct(); err != nil {
			return nil, err
		}
		for _, t := range m.targets {
			if t.kind == "Gateway" && (t.namespace != namespace || t.name != gateway) {
				return nil, fmt.Errorf("target %s: this is of Gateway %s/%s alone; render another Gateway apart", t, namespace, gateway)
			}
		}
		context = "GATEWAY"
		filter.TargetRefs = []reference{{gatewayAPI, "Gateway", gateway}}
	} else {
		filter.WorkloadSelector = &workloadLabels{m.labels()}
	}
	if filter.ConfigPatches, err = m.patches(context); err != nil {
		return nil, err
	}
	return documents(m.notes(), document{
		m.title("An Istio proxy"), object{"networking.istio.io/v1alpha3", "EnvoyFilter", meta{m.name(), namespace}, filter},
	})
}

func (m *model) patches(context string) ([]configPatch, error) {
	check, err := httpFilter(filterName, m.filter())
	if err != nil {
		return nil, err
	}
	filter, err := tree(check)
	if err != nil {
		return nil, err
	}
	c, err := m.cluster()
	if err != nil {
		return nil, err
	}
	cluster, err := tree(c)
	if err != nil {
		return nil, err
	}
	listener := &listenerMatch{}
	listener.FilterChain.Filter = filterMatch{"envoy.filters.network.http_connection_manager", named{"envoy.filters.http.router"}}
	patches := []configPatch{
		{"HTTP_FILTER", patchMatch{Context: context, Listener: listener}, patch{"INSERT_BEFORE", filter}},
		{"CLUSTER", patchMatch{Context: context}, patch{"ADD", cluster}},
	}
	if !m.ofGateway() {
		return patches, nil
	}
	for _, t := range m.targets {
		more, err := m.naming(t)
		if err != nil {
			return nil, err
		}
		patches = append(patches, more...)
	}
	return patches, nil
}

// naming are the patches that name a target in the checks of its routes.
func (m *model) naming(t target) ([]configPatch, error) {
	settings, err := perFilter(t)
	if err != nil {
		return nil, err
	}
	value, err := tree(&routev3.Route{TypedPerFilterConfig: settings}) // a virtual host calls it the same
	if err != nil {
		return nil, err
	}
	if t.kind == "Gateway" {
		return []configPatch{{"VIRTUAL_HOST", patchMatch{Context: "GATEWAY"}, patch{"MERGE", value}}}, nil
	}
	var patches []configPatch
	for rule := range max(m.RouteRules, 1) {
		match := &routesMatch{}
		match.Vhost.Route.Name = fmt.Sprintf("%s.%s.%d", t.namespace, t.name, rule)
		patches = append(patches, configPatch{"HTTP_ROUTE", patchMatch{Context: "GATEWAY", RouteConfiguration: match}, patch{"MERGE", value}})
	}
	return patches, nil
}

func (m *model) istioNotes() map[string]string {
	notes := map[string]string{
		"hosts":                             "A name for the mesh only: nobody resolves it.",
		"spec/exportTo":                     "each namespace has its own",
		"spec/location":                     "no mutual TLS: it is within the pod",
		"ports":                             "GRPC makes it HTTP/2.",
		"spec/endpoints":                    m.addressNote(),
		"trafficPolicy/tls":                 "Whatever the mesh's default is: the sidecar speaks no TLS.",
		"tcp/connectTimeout":                "the default is 10 s",
		"selector/matchLabels":              "The pods' own labels, as the target's selector has them.",
		"AuthorizationPolicy/spec/provider": "In the mesh's configuration.",
		"spec/rules":                        "Every request: the policies say which ones count. CUSTOM comes after mutual TLS, but before Istio verifies tokens and before its ALLOW and DENY: what those refuse is counted too.",
		"envoyExtAuthzGrpc/service":         "namespace/host of the ServiceEntry",
		"envoyExtAuthzGrpc/timeout":         "Istio's default is 600 s: one that stands still would hold every request",
		"envoyExtAuthzGrpc/failOpen":        m.failureNote(),
		"envoyExtAuthzGrpc/statusOnError":   "else 403, which clients take for a verdict on them",
		"workloadSelector/labels":           "The pods' own labels, as the target's selector has them.",
		"listener/filterChain":              "Just before the router: after Istio's authentication and authorization.",
		"routeConfiguration/vhost":          "Istio names the routes of an HTTPRoute's rules namespace.name.0, .1, …, and a rule with a name of its own by that.",
		"value/typed_per_filter_config":     m.namedNote(),
	}
	return notes
}
