package content

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weirproxy/weir/internal/policy"
)

// Exposed are the header fields that a page's script may read of a refusal.
const Exposed = "Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"

// The registered problem types of draft-ietf-httpapi-ratelimit-headers-10 and RFC 9457.
const (
	quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	blankProblem  = "about:blank"
)

// Status is the HTTP status of a policy's refusals.
func Status(p *policy.Policy) int {
	if p.Response.Status == 0 {
		return 429
	}
	return p.Response.Status
}

// LimitName names a limit to clients: policy name/limit name, without the namespace.
func LimitName(l *policy.Limit) string {
	name := l.Policy.Name
	return name[strings.LastIndexByte(name, '/')+1:] + "/" + l.Name
}

type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies,omitempty"`
	Policy   string   `json:"policy"`
	Limit    string   `json:"limit,omitempty"`
	Rate     string   `json:"rate,omitempty"`
}

// Problem is the body of a refusal (RFC 9457). It names the limit that refused and nothing of the client. r is the rate
// that was exhausted; nil: the client is refused as unknown.
func Problem(l *policy.Limit, r *policy.Rate) []byte {
	p := problem{
		Type: blankProblem, Title: "Client not identified", Status: Status(l.Policy), Detail: Sentence(l, r),
		Policy: l.Policy.Name, Limit: l.Name,
	}
	if r != nil {
		p.Type, p.Title, p.Rate = quotaExceeded, "Quota exceeded", r.Title
		p.Violated = []string{LimitName(l)}
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil // a struct of strings and a number encodes
	}
	return b
}

// Sentence says the same in one, for callers that read no body. r as in Problem.
func Sentence(l *policy.Limit, r *policy.Rate) string {
	if r == nil {
		return fmt.Sprintf("Limit %s of policy %s refuses requests that do not say who calls.", l.Name, l.Policy.Name)
	}
	return fmt.Sprintf("Limit %s of policy %s allows %s.", l.Name, l.Policy.Name, r.Title)
}
