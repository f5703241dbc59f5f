package unary

import (
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// request is what a header list says of a call.
type request struct {
	handler Handler // nil: no such method
	path    string
	status  int   // of HTTP, for what is no gRPC call; 0: it is one
	length  int64 // of the body, if the peer says; else -1
	bad     bool  // malformed in any place (RFC 9113, 8.1.1)
	lacks   bool  // a pseudo-header is missing: no request, though it may be trailers
	pseudo  bool  // there is a pseudo-header: no trailers
	large   bool  // longer than the bound; not all of it is known

	method, contentType string
	scheme, authority   bool
	regular             bool // a field that is no pseudo-header was there
}

// add takes one field of the list.
func (r *request) add(name, value string) {
	if !httpguts.ValidHeaderFieldValue(value) {
		r.bad = true
	}
	if strings.HasPrefix(name, ":") {
		r.addPseudo(name, value)
		return
	}
	r.regular = true
	if !validName(name) {
		r.bad = true
	}
	switch name {
	case "content-type":
		r.contentType = value
	case "te":
		r.bad = r.bad || value != "trailers"
	case "content-length":
		n, err := strconv.ParseUint(value, 10, 63)
		r.bad = r.bad || err != nil || (r.length >= 0 && r.length != int64(n))
		r.length = int64(n)
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		r.bad = true
	}
}

func (r *request) addPseudo(name, value string) {
	again := false
	switch name {
	case ":method":
		again, r.method = r.method != "", value
	case ":path":
		again, r.path = r.path != "", value
	case ":scheme":
		again, r.scheme = r.scheme, true
	case ":authority":
		again, r.authority = r.authority, true
	default:
		r.bad = true
	}
	r.pseudo = true
	r.bad = r.bad || again || r.regular || (value == "" && name != ":authority")
}

// judge ends the list.
func (r *request) judge(methods Methods) {
	switch {
	case r.large:
		r.status = 431
	case r.method == "CONNECT":
		r.status = 405
	case r.method == "" || r.path == "" || !r.scheme:
		r.lacks = true
	case r.method != "POST":
		r.status = 405
	case !grpcContent(r.contentType):
		r.status = 415
	default:
		r.handler = methods[r.path]
	}
}

// grpcContent reports whether a content type is gRPC's, with or without a codec's name. The codec is the
// handler's affair.
func grpcContent(t string) bool {
	rest, ok := strings.CutPrefix(t, "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

func validName(name string) bool {
	for i := range len(name) {
		if c := name[i]; 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return httpguts.ValidHeaderFieldName(name)
}
