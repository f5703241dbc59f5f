package match

import (
	"strings"

	"github.com/weirproxy/weir/internal/policy"
)

// excludes is what the presets say of a request, found out once.
type excludes struct{ known, preflight, healthCheck bool }

// excluded reports whether a policy's presets take the request out.
func (s *scan) excluded(e policy.Exclude) bool {
	if !e.CORSPreflight && !e.HealthCheck {
		return false
	}
	if !s.excludes.known {
		s.excludes = excludes{known: true, preflight: s.isPreflight(), healthCheck: s.isHealthCheck()}
	}
	return e.CORSPreflight && s.excludes.preflight || e.HealthCheck && s.excludes.healthCheck
}

// isPreflight: what the Fetch standard calls a CORS-preflight request.
func (s *scan) isPreflight() bool {
	if s.req.Method != "OPTIONS" {
		return false
	}
	_, origin := s.Header("origin")
	_, asks := s.Header("access-control-request-method")
	return origin && asks
}

// isHealthCheck: a read by a known prober, or the gRPC health service. User agents can be forged:
// the policy's documentation says so.
func (s *scan) isHealthCheck() bool {
	switch s.req.Method {
	case "GET", "HEAD":
		agent, _ := s.Header("user-agent")
		return isProber(agent)
	case "POST":
		path := s.Path().String()
		return path == "/grpc.health.v1.Health/Check" || path == "/grpc.health.v1.Health/Watch"
	default:
		return false
	}
}

// isProber knows the user agents of Kubernetes' and Envoy's probes and of the load balancers of
// Amazon, Google, Azure and Alibaba, and Consul's checks.
func isProber(agent string) bool {
	return strings.HasPrefix(agent, "kube-probe/") ||
		agent == "Envoy/HC" ||
		strings.HasPrefix(agent, "ELB-HealthChecker/") ||
		strings.HasPrefix(agent, "Amazon-Route53-Health-Check-Service") ||
		strings.HasPrefix(agent, "GoogleHC/") ||
		agent == "Load Balancer Agent" ||
		agent == "SLBHealthCheck" ||
		agent == "Consul Health Check"
}
