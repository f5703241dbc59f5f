package system

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/parts"
)

// target is whose requests all tests count.
const target = "shop/Service/orders"

// patience guards against a hang; nothing is measured by it.
const patience = 30 * time.Second

// world is one installation on loopback. Its parts are started one by one, so that a test can
// choose the order and leave some away.
type world struct {
	t        *testing.T
	dir      string
	key      string
	policies string

	kafka    *parts.Kafka
	redis    *parts.Redis
	upstream *parts.Upstream
	pods     []*pod
	owners   []*owner
}

// pod is an Envoy with its sidecar.
type pod struct {
	name    string
	socket  string
	admin   string
	state   string
	args    []string
	sidecar *parts.Process
	envoy   *parts.Envoy
}

// owner is an aggregator process.
type owner struct {
	name    string
	admin   string
	args    []string
	process *parts.Process
}

// newWorld prepares directories and an identity key and starts nothing.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.policies = filepath.Join(w.dir, "policies")
	w.must(os.Mkdir(w.policies, 0o750))
	w.key = filepath.Join(w.dir, "identity.key")
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	w.must(os.WriteFile(w.key, key, 0o600))
	return w
}

// settled is a world with everything started in order and the policies in force on every pod.
func settled(t *testing.T, pods, owners int, policies ...string) *world {
	t.Helper()
	w := newWorld(t)
	for i, p := range policies {
		w.write(fmt.Sprintf("p%d.yaml", i), p)
	}
	w.kafka = parts.StartKafka(t, parts.KafkaOpts{})
	w.redis = parts.StartRedis(t, parts.RedisOpts{})
	w.upstream = parts.StartUpstream(t)
	w.ensureTopics()
	for range owners {
		w.addOwner()
	}
	for range pods {
		w.addPod()
	}
	w.ready()
	return w
}

// ensureTopics makes the four topics, as an installation's first step does.
func (w *world) ensureTopics() {
	w.t.Helper()
	p := parts.Program(w.t, "weir-aggregator", "topics", "ensure", "--kafka-brokers", w.kafka.Addr(),
		"--topics-partitions", "4", "--topics-replication", "1")
	if err := p.Wait(patience); err != nil {
		w.t.Fatalf("topics ensure: %v\n%s", err, p.Output())
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// write puts a policy file in place at once, as an editor or a ConfigMap does.
func (w *world) write(name, policy string) {
	w.t.Helper()
	hidden := filepath.Join(w.dir, name+".new")
	w.must(os.WriteFile(hidden, []byte(policy), 0o600))
	w.must(os.Rename(hidden, filepath.Join(w.policies, name)))
}

func (w *world) addOwner() *owner {
	w.t.Helper()
	o := &owner{name: fmt.Sprintf("aggregator-%d", len(w.owners)), admin: w.address()}
	o.args = []string{
		"run", "--instance", o.name, "--policies", w.policies, "--identity-key-file", w.key,
		"--kafka-brokers", w.kafka.Addr(), "--redis-addresses", w.redis.Addr(),
		"--topics-partitions", "4", "--topics-replication", "1", "--admin-address", "tcp://" + o.admin,
	}
	w.owners = append(w.owners, o)
	w.startOwner(o)
	return o
}

func (w *world) startOwner(o *owner) {
	w.t.Helper()
	o.process = parts.Program(w.t, "weir-aggregator", o.args...)
}

func (w *world) addPod() *pod {
	w.t.Helper()
	p := &pod{
		name: fmt.Sprintf("orders-%d", len(w.pods)), socket: parts.SocketPath(w.t), admin: w.address(),
	}
	p.state = filepath.Join(w.dir, p.name)
	w.must(os.MkdirAll(p.state, 0o750))
	p.args = []string{
		"run", "--listen", "unix://" + p.socket, "--target", target, "--identity-key-file", w.key,
		"--kafka-brokers", w.kafka.Addr(), "--pod-namespace", "shop", "--pod-name", p.name,
		"--state-dir", p.state, "--admin-address", "tcp://" + p.admin,
	}
	w.pods = append(w.pods, p)
	w.startSidecar(p)
	p.envoy = parts.StartEnvoy(w.t, parts.EnvoyOpts{
		Upstream: w.upstream.Addr(),
		Authz:    &parts.Authz{Address: "unix://" + p.socket, Timeout: time.Second, FailureModeAllow: true},
	})
	return p
}

func (w *world) startSidecar(p *pod) {
	w.t.Helper()
	p.sidecar = parts.Program(w.t, "weir-sidecar", p.args...)
}

func (w *world) address() string {
	w.t.Helper()
	port, err := parts.FreePort()
	w.must(err)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// ready waits until every sidecar says that policies and decisions are applied, not degraded.
func (w *world) ready() {
	w.t.Helper()
	for _, p := range w.pods {
		w.podReady(p)
	}
}

func (w *world) podReady(p *pod) {
	w.t.Helper()
	parts.Eventually(w.t, patience, p.name+" ready", func() error {
		status, body, err := get("http://" + p.admin + "/readyz")
		if err != nil {
			return err
		}
		if status != 200 || strings.Contains(body, "degraded\":true") {
			return fmt.Errorf("%d: %s", status, body)
		}
		return nil
	})
}

// targets are the pods' Envoys as a load asks them.
func (w *world) targets() []load.Pod {
	out := make([]load.Pod, len(w.pods))
	for i, p := range w.pods {
		out[i] = load.Pod{Name: p.name, Target: load.HTTP(p.envoy.Addr(), 16)}
	}
	return out
}

// start sends sources to the pods.
func (w *world) start(length time.Duration, sources ...load.Source) *load.Run {
	w.t.Helper()
	run, err := load.Start(load.Config{Pods: w.targets(), Sources: sources, For: length, Outstanding: 512, Seed: 1})
	w.must(err)
	w.t.Cleanup(run.Stop)
	return run
}
