package unary

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// TestH2spec runs h2spec, which `make h2spec` builds and names, against a server on loopback. It asks for
// what is no gRPC method: the answer has a body, which its cases of flow control need.
func TestH2spec(t *testing.T) {
	program := os.Getenv("WEIR_H2SPEC")
	if program == "" {
		t.Skip("WEIR_H2SPEC names no h2spec: make h2spec")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- New(methods(), Options{MaxStreams: 100}).Serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	out, err := exec.CommandContext(t.Context(), program, "--strict", "-h", "127.0.0.1", "-p", port).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
