package extauthz

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"

	"github.com/weirproxy/weir/sidecar/check"
	"github.com/weirproxy/weir/sidecar/extauthz/content"
	"github.com/weirproxy/weir/sidecar/extauthz/unary"
	"github.com/weirproxy/weir/sidecar/extauthz/wire"
	"github.com/weirproxy/weir/sidecar/match"
	"github.com/weirproxy/weir/sidecar/metrics"
)

// own is the server by packages unary and wire. A check is decided on the goroutine of its connection.
type own struct {
	checker Checker
	metrics *metrics.Metrics
	server  *unary.Server
	plan    atomic.Pointer[plan]
	calls   sync.Pool
	serving atomic.Bool
	ended   atomic.Bool // whatever is said later, the server does not serve
}

// plan is how checks are read, decided and answered by one snapshot.
type plan struct {
	snapshot *check.Snapshot // nil: nothing was installed
	wanted   *wire.Wanted
	encoder  *wire.Encoder
}

// ownCall is the memory of one check, used again by others.
type ownCall struct {
	req     match.Request
	answer  check.Answer
	scratch wire.Scratch
}

func newOwn(checker Checker, m *metrics.Metrics, drain time.Duration) *own {
	o := &own{checker: checker, metrics: m}
	o.calls.New = func() any { return new(ownCall) }
	o.plan.Store(&plan{encoder: new(wire.Encoder)})
	checker.Prepare(o.prepare)
	o.server = unary.New(unary.Methods{
		checkMethod:       o.check,
		unary.HealthCheck: unary.Health(o.health),
	}, unary.Options{MaxMessage: maxRequest, MaxStreams: maxStreams, Drain: drain})
	return o
}

// prepare makes the next snapshot's plan: what can be done ahead of checks.
func (o *own) prepare(s *check.Snapshot) {
	reads := s.Reads()
	o.plan.Store(&plan{
		snapshot: s,
		wanted:   wire.NewWanted(reads.Headers, reads.Claims),
		encoder:  wire.NewEncoder(s.Policies),
	})
}

// SetServing implements Server.
func (o *own) SetServing(serving bool) { o.serving.Store(serving) }

func (o *own) health(service string) (serving, known bool) {
	return o.serving.Load() && !o.ended.Load(), service == "" || service == authv3.Authorization_ServiceDesc.ServiceName
}

// Serve implements Server.
func (o *own) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { o.ended.Store(true) })
	defer stop()
	if err := o.server.Serve(ctx, l); err != nil {
		return fmt.Errorf("check server: %w", err)
	}
	return nil
}

// check is a unary.Handler.
func (o *own) check(request, reply []byte) (out []byte, code codes.Code, message string) {
	defer func() {
		if recover() != nil { // one request's misfortune is not to end the process
			o.metrics.Check(metrics.Failed)
			out, code, message = nil, codes.Unavailable, sayFailed
		}
	}()
	c := o.calls.Get().(*ownCall)
	out, code, message = o.answer(c, request, reply)
	c.scratch.Reset()
	c.req, c.answer = match.Request{}, check.Answer{}
	o.calls.Put(c)
	return out, code, message
}

func (o *own) answer(c *ownCall, request, reply []byte) (out []byte, code codes.Code, message string) {
	p := o.plan.Load()
	if err := wire.Scan(request, p.wanted, &c.req, &c.scratch); err != nil {
		o.metrics.Check(metrics.Malformed)
		if errors.Is(err, wire.ErrNotHTTP) {
			return nil, codes.InvalidArgument, sayNotHTTP
		}
		return nil, codes.Internal, "weir: " + err.Error()
	}
	o.checker.CheckBy(p.snapshot, &c.req, &c.answer)
	if said := undecided(c.answer.Outcome); said != "" {
		return nil, codes.Unavailable, said
	}
	var from content.Caller
	if !c.answer.Allow() {
		from = content.CallerOf(&c.req)
	}
	out, ok := p.encoder.Append(reply, &c.answer, from)
	if !ok {
		o.metrics.Check(metrics.Failed)
		return nil, codes.Unavailable, sayFailed
	}
	return out, codes.OK, ""
}
