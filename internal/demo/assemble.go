package demo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/embedded"
)

const (
	demoPartitions = 4
	demoGroup      = "weir-demo"
	aggregatorName = "weir-demo-0"
)

// demoTopics are apart from an installation's, for a Kafka of one's own.
func demoTopics() bus.Topics {
	return bus.Topics{Usage: "weir-demo.usage", Decisions: "weir-demo.decisions", Policies: "weir-demo.policies",
		Status: "weir-demo.status", Partitions: demoPartitions}
}

// demoKey is no secret: it is the same each time, so that a Kafka of one's own can be used again.
func demoKey() []byte {
	key := sha256.Sum256([]byte("weir demo"))
	return key[:]
}

// start starts everything, from the bottom up, and returns once the policy is in force on every pod.
func (d *demo) start(ctx context.Context) error {
	d.say("starting Kafka, Redis, an aggregator and %d sidecars", d.Pods)
	kafka, redis, err := d.stores()
	if err != nil {
		return err
	}
	if err := d.topics(ctx, kafka); err != nil {
		return err
	}
	if err := d.aggregator(kafka, redis); err != nil {
		return err
	}
	for i := range d.Pods {
		if err := d.sidecar(i, kafka); err != nil {
			return err
		}
	}
	if err := d.front(ctx); err != nil {
		return err
	}
	return d.settle(ctx)
}

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.Err, format+"\n", args...)
}

// stores are the addresses of Kafka and Redis: one's own, or embedded ones.
func (d *demo) stores() (kafka, redis string, err error) {
	kafka, redis = d.Kafka, d.Redis
	if kafka == "" {
		k, err := embedded.StartKafka("")
		if err != nil {
			return "", "", err
		}
		kafka = k.Addr()
		d.parts.start("embedded Kafka", func(ctx context.Context) error { <-ctx.Done(); k.Close(); return nil })
	}
	if redis == "" {
		r, err := embedded.StartRedis("")
		if err != nil {
			return "", "", err
		}
		redis = r.Addr()
		d.parts.start("embedded Redis", func(ctx context.Context) error { <-ctx.Done(); r.Close(); return nil })
	}
	return kafka, redis, nil
}

func (d *demo) topics(ctx context.Context, kafka string) error {
	waiting := ""
	cfg := bus.Config{Brokers: []string{kafka}, ClientID: "weir-demo", State: func(reason string) { waiting = reason }}
	client, err := bus.Dial(ctx, cfg, d.log)
	if err != nil {
		return fmt.Errorf("connect to Kafka at %s: %w (%s)", kafka, err, waiting)
	}
	defer func() { _ = client.Close() }()
	changes, err := client.Ensure(ctx, demoTopics(), false)
	for _, c := range changes {
		d.log.Info("topic", zap.Stringer("change", c))
		if c.Manual {
			return fmt.Errorf("%s; delete the demo's topics (weir-demo.*) and try again", c)
		}
	}
	return err
}

// front puts an Envoy before each sidecar, or, without one, connects to the sidecars themselves.
func (d *demo) front(ctx context.Context) error {
	binary := ""
	if !d.NoEnvoy {
		var err error
		if binary, err = findEnvoy(d.Envoy); err != nil {
			return err
		}
		if binary == "" {
			d.say("no Envoy in .tools/bin or on the PATH (make envoy installs one): the load asks the sidecars directly")
		}
	}
	if binary == "" {
		return d.withoutEnvoy()
	}
	return d.withEnvoy(ctx, binary)
}

func (d *demo) withoutEnvoy() error {
	for _, p := range d.pods {
		asker, conn, err := dialSidecar(p.check(), d.request)
		if err != nil {
			return err
		}
		p.asker, p.conn = asker, conn
	}
	d.hints = []string{"what a sidecar would answer, and why:", d.explainLine()}
	return nil
}

func (d *demo) explainLine() string {
	return fmt.Sprintf("  bin/weir explain --sidecar %s --path %s%s", d.pods[0].adminAddr(), d.path, flagsOf(d.headers))
}

func (d *demo) withEnvoy(ctx context.Context, binary string) error {
	d.say("starting %d Envoys: %s", len(d.pods), binary)
	up, err := newUpstream()
	if err != nil {
		return err
	}
	d.parts.start("upstream", up.run)
	ready := make([]chan string, len(d.pods))
	for i, p := range d.pods {
		e := &envoy{binary: binary, dir: p.dir, socket: p.checkPath(), port: up.addr().Port}
		ready[i] = make(chan string, 1)
		d.parts.start("Envoy of "+p.name, func(ctx context.Context) error {
			return e.run(ctx, func(addr string) { ready[i] <- addr })
		})
	}
	for i, p := range d.pods {
		select {
		case addr := <-ready[i]:
			p.url = "http://" + addr
			p.asker = &viaEnvoy{newHTTPClient(inFlight), &d.unchecked, p.url, d.request}
		case err := <-d.parts.failed:
			return err
		case <-ctx.Done():
			return fmt.Errorf("Envoy of %s was not ready within %s", p.name, startWithin)
		}
	}
	d.hints = d.curls()
	return nil
}

// curls are lines to try by hand.
func (d *demo) curls() []string {
	first, last := d.pods[0], d.pods[len(d.pods)-1]
	load := fmt.Sprintf("curl -i%s %s%s", curlHeaders(d.headers), first.url, d.path)
	if d.Policy != "" {
		return []string{"as the load's client, mostly refused:", "  " + load}
	}
	return []string{
		"another client passes:", fmt.Sprintf("  curl -i -H 'x-api-key: you' %s/", first.url),
		"a quota that is used up, on any pod (429, with headers):", fmt.Sprintf("  curl -i %s/reports", last.url),
		"as the load's client, mostly refused:", "  " + load,
		"why, as a sidecar sees it:", d.explainLine(),
		"the policy, to edit while this runs: " + d.policies() + "/policy.yaml",
	}
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func curlHeaders(headers map[string]string) (out string) {
	for _, k := range sortedKeys(headers) {
		out += fmt.Sprintf(" -H '%s: %s'", k, headers[k])
	}
	return out
}

func flagsOf(headers map[string]string) (out string) {
	for _, k := range sortedKeys(headers) {
		out += fmt.Sprintf(" --header '%s: %s'", k, headers[k])
	}
	return out
}

// settle waits until the policy is in force on every pod and, for the demo's own policy, uses up its quota of
// reports, so that a curl gets a 429.
func (d *demo) settle(ctx context.Context) error {
	for _, p := range d.pods {
		if err := d.inForce(ctx, p); err != nil {
			return err
		}
	}
	if d.Policy != "" {
		return nil
	}
	return d.useUpReports(ctx)
}

func (d *demo) inForce(ctx context.Context, p *pod) error {
	done := make(chan error, 1)
	go func() { done <- p.inForce(ctx, d.request) }()
	select {
	case err := <-d.parts.failed:
		return fmt.Errorf("%w%s", err, d.lastWords())
	case err := <-done:
		if err != nil {
			return fmt.Errorf("the policy was not in force within %s: %w%s", startWithin, err, d.lastWords())
		}
		return nil
	}
}

// useUpReports takes the one report that each pod may give before the first decision.
func (d *demo) useUpReports(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r := request{"GET", "/reports", nil}
	for _, p := range d.pods {
		var a asker
		if p.url != "" {
			a = &viaEnvoy{newHTTPClient(1), &d.unchecked, p.url, r}
		} else {
			direct, conn, err := dialSidecar(p.check(), r)
			if err != nil {
				return err
			}
			defer func() { _ = conn.Close() }()
			a = direct
		}
		if _, err := a.ask(ctx); err != nil {
			return fmt.Errorf("ask %s for a report: %w", p.name, err)
		}
	}
	return nil
}
