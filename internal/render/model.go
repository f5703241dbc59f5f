package render

import (
	"fmt"
	"net"
	"strconv"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	filterName   = "envoy.filters.http.ext_authz"
	clusterName  = "weir"
	statPrefix   = "weir"
	jwtNamespace = "envoy.filters.http.jwt_authn"
	// targetExtension is the context extension by which a check names its target.
	targetExtension = "weir.target"
	httpOptions     = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	// inFlight is how many checks one Envoy may have outstanding.
	inFlight = 16384
	// away is what clients are told with FailClosed.
	away = 503
)

// filter is the external authorization filter.
func (m *model) filter() *extauthzv3.ExtAuthz {
	f := &extauthzv3.ExtAuthz{
		TransportApiVersion: corev3.ApiVersion_V3,
		Services: &extauthzv3.ExtAuthz_GrpcService{GrpcService: &corev3.GrpcService{
			TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: clusterName}},
			Timeout:         durationpb.New(m.Timeout),
		}},
		FailureModeAllow:          !m.Needs.FailClosed,
		FailureModeAllowHeaderAdd: m.MarkUnchecked && !m.Needs.FailClosed,
		EncodeRawHeaders:          true,
		StatPrefix:                statPrefix,
	}
	if m.Needs.FailClosed {
		f.StatusOnError = &typev3.HttpStatus{Code: away}
	}
	if m.Needs.Known {
		f.AllowedHeaders = exactly(m.Needs.allowed())
	}
	if m.Needs.Claims {
		f.MetadataContextNamespaces = []string{jwtNamespace}
	}
	return f
}

func exactly(names []string) *matcherv3.ListStringMatcher {
	list := &matcherv3.ListStringMatcher{}
	for _, n := range names {
		list.Patterns = append(list.Patterns, &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: n}})
	}
	return list
}

// perFilter names the target in each check of a route.
func perFilter(t target) (map[string]*anypb.Any, error) {
	settings, err := anypb.New(&extauthzv3.ExtAuthzPerRoute{Override: &extauthzv3.ExtAuthzPerRoute_CheckSettings{
		CheckSettings: &extauthzv3.CheckSettings{ContextExtensions: map[string]string{targetExtension: t.String()}},
	}})
	return map[string]*anypb.Any{filterName: settings}, err
}

// cluster is the sidecar as an upstream.
func (m *model) cluster() (*clusterv3.Cluster, error) {
	at, err := m.checkAddress()
	if err != nil {
		return nil, err
	}
	c := staticCluster(clusterName, at)
	c.ConnectTimeout = durationpb.New(m.Timeout)
	c.CircuitBreakers = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxPendingRequests: wrapperspb.UInt32(inFlight), MaxRequests: wrapperspb.UInt32(inFlight),
	}}}
	options, err := anypb.New(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{}},
		}},
	})
	c.TypedExtensionProtocolOptions = map[string]*anypb.Any{httpOptions: options}
	return c, err
}

func (m *model) checkAddress() (*corev3.Address, error) {
	if m.Check.Network == "unix" {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: m.Check.Path}}}, nil
	}
	return socketAddress(m.Check.Path)
}

func staticCluster(name string, at *corev3.Address) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: name,
			Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: at}},
			}}}},
		},
	}
}

func socketAddress(hostPort string) (*corev3.Address, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, fmt.Errorf("address %q: want host:port", hostPort)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || net.ParseIP(host) == nil {
		return nil, fmt.Errorf("address %q: want an IP address and a port", hostPort)
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(number)},
	}}}, nil
}
