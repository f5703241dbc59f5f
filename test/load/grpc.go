package load

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
)

// grpcTarget asks a checker as Envoy's ext_authz filter does.
type grpcTarget struct {
	conns  []*grpc.ClientConn
	broken error
	next   atomic.Uint64
}

// GRPC returns a target that asks the checker at address (unix:///path or
// host:port) itself, over n connections in turn. A refusal is an answer with
// the status that Envoy would send, an error of the call is an error. Lost
// connections are made anew, tried at least every 100 ms. An address that
// makes no sense is an error of each Do.
func GRPC(address string, n int) Target {
	t := &grpcTarget{}
	for range n {
		conn, err := grpc.NewClient(address,
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 100 * time.Millisecond},
				MinConnectTimeout: time.Second,
			}),
		)
		if err != nil {
			t.broken = err
			break
		}
		t.conns = append(t.conns, conn)
	}
	return t
}

func (t *grpcTarget) Do(ctx context.Context, r *Request) (Answer, error) {
	if t.broken != nil {
		return Answer{}, t.broken
	}
	conn := t.conns[t.next.Add(1)%uint64(len(t.conns))]
	response, err := authv3.NewAuthorizationClient(conn).Check(ctx, checkRequest(r))
	if err != nil {
		return Answer{}, err
	}
	return checkAnswer(response), nil
}

func (t *grpcTarget) Close() error {
	var errs []error
	for _, conn := range t.conns {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}

// checkRequest is what Envoy makes of r: pseudo headers among the headers.
func checkRequest(r *Request) *authv3.CheckRequest {
	headers := make(map[string]string, len(r.Header)+4)
	for name, value := range r.Header {
		headers[name] = value
	}
	headers[":method"], headers[":path"], headers[":authority"], headers[":scheme"] = r.method(), r.path(), r.host(), "http"
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: &authv3.AttributeContext_Peer{Address: socketAddress(r.peer()), Principal: r.Principal},
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method:   r.method(),
			Path:     r.path(),
			Host:     r.host(),
			Scheme:   "http",
			Protocol: "HTTP/1.1",
			Headers:  headers,
		}},
		ContextExtensions: r.Extensions,
	}}
}

func socketAddress(ip string) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       ip,
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 40000},
	}}}
}

// checkAnswer is what Envoy makes of a response: OK passes the request on, and
// a refusal without a status of its own is 403.
func checkAnswer(response *authv3.CheckResponse) Answer {
	if codes.Code(response.GetStatus().GetCode()) == codes.OK {
		return Answer{Status: http.StatusOK, Header: headerOf(response.GetOkResponse().GetResponseHeadersToAdd())}
	}
	denied := response.GetDeniedResponse()
	answer := Answer{Status: http.StatusForbidden, Header: headerOf(denied.GetHeaders())}
	if code := denied.GetStatus().GetCode(); code != 0 {
		answer.Status = int(code)
	}
	return answer
}

// headerOf reads response headers, whose values come as text or as bytes.
func headerOf(options []*corev3.HeaderValueOption) http.Header {
	header := make(http.Header, len(options))
	for _, option := range options {
		value := option.GetHeader().GetValue()
		if raw := option.GetHeader().GetRawValue(); len(raw) > 0 {
			value = string(raw)
		}
		header.Add(option.GetHeader().GetKey(), value)
	}
	return header
}
