package render

import (
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	serviceCluster = "service"
	// The times of a plain Envoy's own: headers of a request, silence on a stream, the service's answer, connecting to it.
	headersTimeout = 10 * time.Second
	idleTimeout    = 5 * time.Minute
	routeTimeout   = 15 * time.Second
	serviceConnect = time.Second
)

// Envoy is a whole configuration of a plain Envoy: one listener, the check before the router, one service.
func Envoy(o Options) ([]byte, error) {
	m, err := newModel(o)
	if err != nil {
		return nil, err
	}
	b, err := m.bootstrap()
	if err != nil {
		return nil, err
	}
	n, err := tree(b)
	if err != nil {
		return nil, err
	}
	return documents(m.notes(), document{title: m.title("A plain Envoy"), body: n})
}

func (m *model) bootstrap() (*bootstrapv3.Bootstrap, error) {
	admin, err := socketAddress(m.Admin)
	if err != nil {
		return nil, err
	}
	at, err := socketAddress(m.Service)
	if err != nil {
		return nil, err
	}
	service := staticCluster(serviceCluster, at)
	service.ConnectTimeout = durationpb.New(serviceConnect)
	weir, err := m.cluster()
	if err != nil {
		return nil, err
	}
	listener, err := m.listener()
	if err != nil {
		return nil, err
	}
	return &bootstrapv3.Bootstrap{
		Admin: &bootstrapv3.Admin{Address: admin},
		StaticResources: &bootstrapv3.Bootstrap_StaticResources{
			Listeners: []*listenerv3.Listener{listener},
			Clusters:  []*clusterv3.Cluster{weir, service},
		},
	}, nil
}

func (m *model) listener() (*listenerv3.Listener, error) {
	at, err := socketAddress(m.Listener)
	if err != nil {
		return nil, err
	}
	manager, err := m.manager()
	if err != nil {
		return nil, err
	}
	config, err := anypb.New(manager)
	return &listenerv3.Listener{
		Name:    "ingress",
		Address: at,
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name:       "envoy.filters.network.http_connection_manager",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config},
		}}}},
	}, err
}

func (m *model) manager() (*hcmv3.HttpConnectionManager, error) {
	hosts, err := m.virtualHosts()
	if err != nil {
		return nil, err
	}
	var logs []*accesslogv3.AccessLog
	if m.AccessLog {
		log, err := accessLog()
		if err != nil {
			return nil, err
		}
		logs = append(logs, log)
	}
	check, err := httpFilter(filterName, m.filter())
	if err != nil {
		return nil, err
	}
	router, err := httpFilter("envoy.filters.http.router", &routerv3.Router{})
	return &hcmv3.HttpConnectionManager{
		StatPrefix:            "ingress",
		UseRemoteAddress:      wrapperspb.Bool(true),
		NormalizePath:         wrapperspb.Bool(true),
		MergeSlashes:          true,
		RequestHeadersTimeout: durationpb.New(headersTimeout),
		StreamIdleTimeout:     durationpb.New(idleTimeout),
		AccessLog:             logs,
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{
			RouteConfig: &routev3.RouteConfiguration{Name: "ingress", VirtualHosts: hosts},
		},
		HttpFilters: []*hcmv3.HttpFilter{check, router},
	}, err
}

func httpFilter(name string, config proto.Message) (*hcmv3.HttpFilter, error) {
	c, err := anypb.New(config)
	return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: c}}, err
}

// virtualHosts is one for a pod's service; of a gateway one for each target, which it names.
func (m *model) virtualHosts() ([]*routev3.VirtualHost, error) {
	if !m.ofGateway() {
		return []*routev3.VirtualHost{virtualHost("service", "*")}, nil
	}
	if err := m.distinct(); err != nil {
		return nil, err
	}
	var hosts []*routev3.VirtualHost
	for _, t := range m.targets {
		settings, err := perFilter(t)
		if err != nil {
			return nil, err
		}
		domain := t.name + ".example.com"
		if len(m.targets) == 1 {
			domain = "*"
		}
		h := virtualHost(t.name, domain)
		h.TypedPerFilterConfig = settings
		hosts = append(hosts, h)
	}
	return hosts, nil
}

func virtualHost(name, domain string) *routev3.VirtualHost {
	return &routev3.VirtualHost{
		Name:    name,
		Domains: []string{domain},
		Routes: []*routev3.Route{{
			Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{
				ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: serviceCluster},
				Timeout:          durationpb.New(routeTimeout),
			}},
		}},
	}
}

// accessLog is a JSON line a request, with which limit refused it, or would have.
func accessLog() (*accesslogv3.AccessLog, error) {
	fields := map[string]*structpb.Value{
		"path":   structpb.NewStringValue("%REQ(:PATH)%"),
		"status": structpb.NewStringValue("%RESPONSE_CODE%"),
		"weir":   structpb.NewStringValue("%DYNAMIC_METADATA(" + filterName + ")%"),
	}
	config, err := anypb.New(&streamv3.StdoutAccessLog{AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{
		LogFormat: &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_JsonFormat{
			JsonFormat: &structpb.Struct{Fields: fields},
		}},
	}})
	return &accesslogv3.AccessLog{
		Name: "envoy.access_loggers.stdout", ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: config},
	}, err
}
