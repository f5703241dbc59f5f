package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weirproxy/weir/internal/listen"
)

// loadHost is the host of the load's requests.
const loadHost = "demo"

// request is what the load sends.
type request struct {
	method, path string
	headers      map[string]string // lower-case names
}

// viaEnvoy asks through a pod's Envoy.
type viaEnvoy struct {
	client    *http.Client
	unchecked *atomic.Int64 // requests that Envoy let through by itself
	base      string        // http://127.0.0.1:port
	request
}

func newHTTPClient(conns int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns, DisableCompression: true}}
}

func (v *viaEnvoy) ask(ctx context.Context) (bool, error) {
	r, err := http.NewRequestWithContext(ctx, v.method, v.base+v.path, nil)
	if err != nil {
		return false, err
	}
	for k, value := range v.headers {
		r.Header.Set(k, value)
	}
	r.Host = loadHost
	res, err := v.client.Do(r)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)); err != nil {
		return false, err
	}
	// The sidecar's refusals alone are problem+json or carry the policy's status; the upstream answers 200.
	switch {
	case res.StatusCode == http.StatusOK:
		if res.Header.Get(uncheckedHeader) != "" {
			v.unchecked.Add(1)
		}
		return true, nil
	case res.StatusCode >= 400 && res.StatusCode < 500:
		return false, nil
	default:
		return false, fmt.Errorf("%s%s answered %d", v.base, v.path, res.StatusCode)
	}
}

// direct asks a sidecar as Envoy would.
type direct struct {
	client authv3.AuthorizationClient
	check  *authv3.CheckRequest
}

// dialSidecar connects to a sidecar's check address; close the connection when done.
func dialSidecar(addr string, r request) (*direct, *grpc.ClientConn, error) {
	a, err := listen.Parse(addr)
	if err != nil {
		return nil, nil, err
	}
	conn, err := grpc.NewClient(a.Target(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, err
	}
	return &direct{authv3.NewAuthorizationClient(conn), checkRequest(r)}, conn, nil
}

func checkRequest(r request) *authv3.CheckRequest {
	headers := map[string]string{":method": r.method, ":path": r.path, ":authority": loadHost, ":scheme": "http"}
	for k, v := range r.headers {
		headers[strings.ToLower(k)] = v
	}
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source: peer("127.0.0.1"), Destination: peer("127.0.0.1"),
		Request: &authv3.AttributeContext_Request{Http: &authv3.AttributeContext_HttpRequest{
			Method: r.method, Path: r.path, Host: loadHost, Scheme: "http", Protocol: "HTTP/1.1", Headers: headers,
		}},
	}}
}

func (d *direct) ask(ctx context.Context) (bool, error) {
	res, err := d.client.Check(ctx, d.check)
	if err != nil {
		return false, err
	}
	return res.GetStatus().GetCode() == int32(codes.OK), nil
}
