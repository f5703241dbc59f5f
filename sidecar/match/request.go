package match

import (
	"net/netip"
	"strings"
)

// Request is what a check says of a request. Its texts may be views of the wire's buffer: Match
// reads none of them after it returns, and the Result does not give them on.
type Request struct {
	Method string
	// Path as Envoy sends it: undecoded, with the query.
	Path    string
	Host    string
	Headers Headers
	// Peer is source.address, the last hop; invalid where there is none (a unix socket).
	Peer netip.Addr
	// Principal is source.principal; "" without mTLS.
	Principal string
	// Claims of a verified token; nil: none.
	Claims Claims
	// Target is context_extensions["weir.target"]; "": the pod's own targets.
	Target string
	// Random is any uniformly random number: enforcePercent by request depends on it.
	Random uint64
}

// Claims gives a claim of the request's verified token in its text form.
type Claims interface {
	Claim(name string) (value string, ok bool)
}

// Headers are a request's headers in either form that Envoy sends; both give the same values. Names
// are in lower case. The zero value has none.
type Headers struct {
	// Joined: repeated headers joined by commas (attributes.request.http.headers).
	Joined map[string]string
	// Raw: one item each time a header occurs, in order, any bytes (header_map).
	Raw []Header
}

// Header is one occurrence of a header.
type Header struct{ Name, Value string }

// get returns a header's values joined by commas. It appends to scratch where it must join.
func (h *Headers) get(name string, scratch *[]byte) (string, bool) {
	if v, ok := h.Joined[name]; ok {
		return v, true
	}
	first := h.find(name, 0)
	if first < 0 {
		return "", false
	}
	next := h.find(name, first+1)
	if next < 0 {
		return h.Raw[first].Value, true
	}
	from := len(*scratch)
	buf := append(*scratch, h.Raw[first].Value...)
	for ; next >= 0; next = h.find(name, next+1) {
		buf = append(buf, ',')
		buf = append(buf, h.Raw[next].Value...)
	}
	*scratch = buf
	return text(buf[from:]), true
}

// find returns the index of a header's next occurrence, -1 if there is none.
func (h *Headers) find(name string, from int) int {
	for i := from; i < len(h.Raw); i++ {
		if h.Raw[i].Name == name {
			return i
		}
	}
	return -1
}

// firstValue and lastValue take one of what commas separate, empty ones left out.
func firstValue(joined string) string {
	for rest, more := joined, true; more; {
		var v string
		v, rest, more = strings.Cut(rest, ",")
		if v = strings.Trim(v, " \t"); v != "" {
			return v
		}
	}
	return ""
}

func lastValue(joined string) string {
	for rest := joined; rest != ""; {
		i := strings.LastIndexByte(rest, ',')
		if v := strings.Trim(rest[i+1:], " \t"); v != "" {
			return v
		}
		rest = rest[:max(i, 0)]
	}
	return ""
}
