package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	"github.com/weirproxy/weir/internal/admin"
	"github.com/weirproxy/weir/internal/explain"
)

// pod is one sidecar, and the Envoy before it if there is one.
type pod struct {
	name  string
	dir   string
	admin *admin.Client
	asker asker
	conn  *grpc.ClientConn // to the sidecar, without an Envoy
	// url is the Envoy's, "" without one.
	url string
	// age of the decision in force for the load's counter, when it was asked last; negative: none.
	age time.Duration
}

func (p *pod) checkPath() string { return filepath.Join(p.dir, "check.sock") }
func (p *pod) check() string     { return "unix://" + p.checkPath() }
func (p *pod) adminAddr() string { return "unix://" + filepath.Join(p.dir, "admin.sock") }

func newPod(dir string, i int) (*pod, error) {
	p := &pod{name: fmt.Sprintf("pod-%d", i), age: -1}
	p.dir = filepath.Join(dir, p.name)
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	p.admin, err = admin.NewClient(p.adminAddr())
	return p, err
}

// explained asks what the sidecar would answer to the load's request.
func (p *pod) explained(ctx context.Context, r request) (explain.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	headers := map[string][]string{}
	for k, v := range r.headers {
		headers[k] = []string{v}
	}
	var out explain.Response
	err := p.admin.Post(ctx, explain.Path,
		explain.Request{Method: r.method, Path: r.path, Headers: headers, Host: loadHost, RemoteAddress: "127.0.0.1"}, &out)
	return out, err
}

// inForce waits until the sidecar is ready and some limit applies to the load's request.
func (p *pod) inForce(ctx context.Context, r request) error {
	var last error
	for {
		status, body, err := p.admin.Get(ctx, "/readyz")
		switch {
		case err != nil:
			last = err
		case status != 200:
			last = fmt.Errorf("it is not ready: %s", body)
		default:
			answer, err := p.explained(ctx, r)
			if err == nil && len(answer.Counters) > 0 {
				return nil
			}
			if last = err; err == nil {
				last = fmt.Errorf("no limit applies to %s %s there (%s)", r.method, r.path, answer.Outcome)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", p.name, last)
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// sampleAge notes the age of the decision in force for the load's counter.
func (p *pod) sampleAge(ctx context.Context, r request) (time.Duration, bool) {
	answer, err := p.explained(ctx, r)
	if err != nil {
		return -1, false
	}
	age, found := time.Duration(-1), false
	for _, c := range answer.Counters {
		if c.DecisionAgeMS != nil {
			age, found = max(age, time.Duration(*c.DecisionAgeMS*float64(time.Millisecond))), true
		}
	}
	return age, found
}
