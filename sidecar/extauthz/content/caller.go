package content

import (
	"strings"

	"github.com/weirproxy/weir/sidecar/match"
)

// Caller is what a refusal's form depends on, besides the decision.
type Caller struct {
	Origin string // of a browser; "" if none
	GRPC   bool
}

// CallerOf reads it from a request. Origin is a view of the request.
func CallerOf(req *match.Request) Caller {
	rest, grpc := strings.CutPrefix(first(&req.Headers, "content-type"), "application/grpc")
	return Caller{
		Origin: first(&req.Headers, "origin"),
		GRPC:   grpc && (rest == "" || rest[0] == '+' || rest[0] == ';'),
	}
}

// first returns a header's first value.
func first(h *match.Headers, name string) string {
	if v, ok := h.Joined[name]; ok {
		return v
	}
	for i := range h.Raw {
		if h.Raw[i].Name == name {
			return h.Raw[i].Value
		}
	}
	return ""
}

// PlainOrigin holds of what a browser sends: visible ASCII. Nothing else is echoed.
func PlainOrigin(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || c == ',' {
			return false
		}
	}
	return s != "" && len(s) <= 512
}
