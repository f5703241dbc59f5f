package demo

import (
	"net/netip"
	"strings"

	"github.com/weirproxy/weir/internal/policy"
)

// concerns reports whether a limit applies to the load's request.
func concerns(l *policy.Limit, r request) bool {
	path, _ := policy.NormalizePath(r.path, nil)
	_, ok := l.When.Matches(view{r, &path})
	return ok
}

// view is the load's request as conditions see it.
type view struct {
	request
	parsed *policy.Path
}

func (v view) Method() string        { return v.method }
func (v view) Path() *policy.Path    { return v.parsed }
func (v view) Host() string          { return loadHost }
func (v view) Source(int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) }

func (v view) Header(name string) (string, bool) {
	for k, value := range v.headers {
		if strings.EqualFold(k, name) {
			return value, true
		}
	}
	return "", false
}
