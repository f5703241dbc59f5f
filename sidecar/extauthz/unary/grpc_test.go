package unary

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// plain passes bytes as they are.
type plain struct{}

func (plain) Name() string { return "plain" }

func (plain) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (plain) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = plain{}

// stock serves methods by grpc-go, for comparison.
func stock(t testing.TB, methods Methods, o ...grpc.ServerOption) (path string) {
	t.Helper()
	path = t.TempDir() + "/s"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(append(o, grpc.ForceServerCodecV2(plain{}))...)
	for _, service := range services(methods) {
		server.RegisterService(&service, nil)
	}
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { server.Stop(); done.Wait() })
	return path
}

// services are methods as grpc-go wants them.
func services(methods Methods) map[string]grpc.ServiceDesc {
	all := make(map[string]grpc.ServiceDesc)
	for path, h := range methods {
		service, method, _ := strings.Cut(path[1:], "/")
		handle := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var in []byte
			if err := decode(&in); err != nil {
				return nil, err
			}
			out, code, reason := h(in, nil)
			return &out, status.Error(code, reason) // nil for OK
		}
		desc := all[service]
		desc.ServiceName, desc.HandlerType = service, (*any)(nil)
		desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: method, Handler: handle})
		all[service] = desc
	}
	return all
}

func client(t testing.TB, path string, o ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient("unix:"+path, append(o, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

func invoke(ctx context.Context, cc *grpc.ClientConn, method string, in []byte, o ...grpc.CallOption) ([]byte, error) {
	var out []byte
	err := cc.Invoke(ctx, method, &in, &out, append(o, grpc.ForceCodecV2(plain{}))...)
	return out, err
}

// A stock client cannot tell this server from grpc-go's by what its calls return.
func TestAsGRPC(t *testing.T) {
	faultless := methods() // grpc-go would end the process, and has no handler that drops a reply
	delete(faultless, panics)
	delete(faultless, drops)
	own, other := client(t, listen(t, Options{})), client(t, stock(t, faultless))
	big := bytes.Repeat([]byte("0123456789"), 100_000)
	cases := []struct {
		method string
		in     []byte
		o      []grpc.CallOption
	}{
		{echo, []byte("hello"), nil},
		{echo, nil, nil},
		{echo, big, nil},
		{echo, append(big, big...), nil},
		{echo, make([]byte, 4<<20), nil},
		{repeat, []byte{0, 0x40, 0, 0}, nil},
		{failed, []byte("a reason with ünïcode, 100 %"), nil},
		{failed, nil, nil},
		{HealthCheck, nil, nil},
		{HealthCheck, []byte("\x0a\x07unknown"), nil},
		{HealthCheck, []byte("\xff"), nil},
	}
	for i, tc := range cases {
		t.Run(fmt.Sprintf("%d %s", i, tc.method[1:]), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			got, gotErr := invoke(ctx, own, tc.method, tc.in, tc.o...)
			want, wantErr := invoke(ctx, other, tc.method, tc.in, tc.o...)
			if !bytes.Equal(got, want) || status.Code(gotErr) != status.Code(wantErr) ||
				status.Convert(gotErr).Message() != status.Convert(wantErr).Message() {
				t.Fatalf("%d bytes, %v; grpc-go: %d bytes, %v", len(got), gotErr, len(want), wantErr)
			}
		})
	}
}

// What only this server answers so, or only in its own words.
func TestGRPCClient(t *testing.T) {
	cc := client(t, listen(t, Options{}))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := invoke(ctx, cc, "/no.Such/Method", []byte("x")); status.Code(err) != codes.Unimplemented {
		t.Errorf("unknown method: %v", err)
	}
	if _, err := invoke(ctx, cc, echo, make([]byte, 4<<20+1)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("too large: %v", err)
	}
	if _, err := invoke(ctx, cc, echo, []byte("hello"), grpc.UseCompressor(gzip.Name)); status.Code(err) != codes.Unimplemented {
		t.Errorf("compressed: %v", err)
	}
	if _, err := invoke(ctx, cc, panics, nil); status.Code(err) != codes.Internal {
		t.Errorf("panic: %v", err)
	}
	res, err := healthv1.NewHealthClient(cc).Check(ctx, &healthv1.HealthCheckRequest{})
	if err != nil || res.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", res, err)
	}
	watch, err := healthv1.NewHealthClient(cc).Watch(ctx, &healthv1.HealthCheckRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("watch: %v", err)
	}
	many := metadata.MD{}
	for i := range 200 {
		many.Append(fmt.Sprintf("x-%d", i), strings.Repeat("v", 100))
	}
	if out, err := invoke(metadata.NewOutgoingContext(ctx, many), cc, echo, []byte("x")); err != nil || string(out) != "x" {
		t.Errorf("headers over several frames: %q, %v", out, err)
	}
}

// Many calls at once, of all sizes, some of which are given up at any moment: each that is answered is
// answered with its own bytes.
func TestManyCalls(t *testing.T) {
	path := listen(t, Options{})
	ccs := []*grpc.ClientConn{client(t, path), client(t, path, grpc.WithInitialWindowSize(1<<16), grpc.WithInitialConnWindowSize(1<<16))}
	var done sync.WaitGroup
	for worker := range 16 {
		done.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(worker))) //nolint:gosec // repeatable
			for i := range 60 {
				in := bytes.Repeat([]byte{byte(worker), byte(i)}, 1<<random.IntN(17))
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				giveUp := random.IntN(4) == 0
				if giveUp {
					time.AfterFunc(time.Duration(random.IntN(500))*time.Microsecond, cancel)
				}
				out, err := invoke(ctx, ccs[worker%2], echo, in)
				cancel()
				if err == nil && !bytes.Equal(in, out) {
					t.Errorf("another's answer: %d bytes for %d", len(out), len(in))
				}
				if err != nil && !giveUp {
					t.Errorf("%d bytes: %v", len(in), err)
				}
			}
		})
	}
	done.Wait()
}

// A stock client moves on to the next server without losing a call: none fails while servers come and go.
func TestNoCallIsLostAtTheEnd(t *testing.T) {
	path := t.TempDir() + "/s"
	serve := func() (stop func()) {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- New(methods(), Options{Drain: patience}).Serve(ctx, l) }()
		return func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	cc := client(t, path, grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: patience}))
	stop := serve()
	enough := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-enough:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				if _, err := invoke(ctx, cc, echo, []byte("x"), grpc.WaitForReady(true)); err != nil {
					t.Errorf("lost: %v", err)
				}
				cancel()
			}
		})
	}
	for range 5 {
		stop()
		stop = serve()
	}
	close(enough)
	callers.Wait()
	stop()
}
