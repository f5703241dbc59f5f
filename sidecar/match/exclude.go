package match

import (
	"strings"

	"github.com/weirproxy/weir/internal/policy"
)

// answer is whether something holds, found out once.
type answer uint8

const (
	unknown answer = iota
	no
	yes
)

func (a *answer) of(find func() bool) bool {
	if *a == unknown {
		*a = no
		if find() {
			*a = yes
		}
	}
	return *a == yes
}

// excluded reports whether a policy's presets take the request out.
func (s *scan) excluded(e policy.Exclude) bool {
	return e.CORSPreflight && s.isPreflight() || e.HealthCheck && s.probes.of(s.isHealthCheck)
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
