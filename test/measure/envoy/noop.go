//go:build linux

package main

import (
	"context"
	"os/signal"
	"syscall"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"

	"github.com/weirproxy/weir/internal/listen"
)

// noop is what every ext_authz server in Go begins with.
type noop struct {
	authv3.UnimplementedAuthorizationServer
	answer *authv3.CheckResponse
}

func (n noop) Check(context.Context, *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	return n.answer, nil
}

// serveNoop serves it, as grpc-go is by default, until SIGTERM.
func serveNoop(path string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	l, err := listen.Listen("unix://"+path, 0o660)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	authv3.RegisterAuthorizationServer(server, noop{answer: &authv3.CheckResponse{
		Status:       &rpcstatus.Status{},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{}},
	}})
	context.AfterFunc(ctx, server.GracefulStop)
	return server.Serve(l)
}
