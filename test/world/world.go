package world

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/parts"
)

// Target is whose requests everything here counts.
const Target = "shop/Service/orders"

// Patience guards against a hang; nothing is measured by it.
const Patience = 60 * time.Second

// World is one installation on loopback: weir's own programs as processes, real Envoys, Kafka and
// Redis. Its parts are started one by one, so that a test can choose the order and leave some away.
// Its methods must be called on the test's own goroutine.
type World struct {
	T        parts.T
	Dir      string // of the test
	Key      string // file of the identity key
	Policies string // directory that the aggregators follow

	Kafka    *parts.Kafka
	Redis    *parts.Redis
	Upstream *parts.Upstream
	// Where set, weir's programs reach Kafka and Redis through these alone. A test itself goes straight.
	KafkaProxy, RedisProxy *parts.Proxy

	Pods   []*Pod
	Owners []*Owner
}

// Pod is an Envoy with its sidecar.
type Pod struct {
	Name    string
	Socket  string
	Admin   string // host:port
	State   string // directory
	Args    []string
	Sidecar *parts.Process
	Envoy   *parts.Envoy
}

// Owner is an aggregator.
type Owner struct {
	Name    string
	Admin   string // host:port
	Args    []string
	Process *parts.Process
}

// New prepares directories and an identity key and starts nothing.
func New(t parts.T) *World {
	t.Helper()
	w := &World{T: t, Dir: t.TempDir()}
	w.Policies = filepath.Join(w.Dir, "policies")
	w.Must(os.Mkdir(w.Policies, 0o750))
	w.Key = filepath.Join(w.Dir, "identity.key")
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	w.Must(os.WriteFile(w.Key, key, 0o600))
	return w
}

// Settled is a world with everything started in order and the policies in force on every pod.
func Settled(t parts.T, pods, owners int, policies ...string) *World {
	t.Helper()
	w := New(t)
	w.Kafka = parts.StartKafka(t, parts.KafkaOpts{})
	w.Redis = parts.StartRedis(t, parts.RedisOpts{})
	w.settle(pods, owners, policies)
	return w
}

// Proxied is Settled with Kafka and Redis behind proxies, in which a test puts faults.
func Proxied(t parts.T, pods, owners int, policies ...string) *World {
	t.Helper()
	w := New(t)
	proxies := parts.StartToxiproxy(t)
	w.KafkaProxy, w.RedisProxy = proxies.Proxy("kafka"), proxies.Proxy("redis")
	w.Kafka = parts.StartKafka(t, parts.KafkaOpts{Via: w.KafkaProxy.Addr()})
	w.KafkaProxy.To(w.Kafka.Behind())
	w.Redis = parts.StartRedis(t, parts.RedisOpts{})
	w.RedisProxy.To(w.Redis.Addr())
	w.settle(pods, owners, policies)
	return w
}

// settle starts all but the servers, in order.
func (w *World) settle(pods, owners int, policies []string) {
	w.T.Helper()
	for i, p := range policies {
		w.Write(fmt.Sprintf("p%d.yaml", i), p)
	}
	w.Upstream = parts.StartUpstream(w.T)
	w.EnsureTopics()
	for range owners {
		w.AddOwner()
	}
	for range pods {
		w.AddPod()
	}
	w.Ready()
}

// brokers is where weir's programs find Kafka.
func (w *World) brokers() string {
	if w.KafkaProxy != nil {
		return w.KafkaProxy.Addr()
	}
	return w.Kafka.Addr()
}

// store is where aggregators find Redis.
func (w *World) store() string {
	if w.RedisProxy != nil {
		return w.RedisProxy.Addr()
	}
	return w.Redis.Addr()
}

// EnsureTopics makes the four topics, as an installation's first step does.
func (w *World) EnsureTopics() {
	w.T.Helper()
	p := parts.Program(w.T, "weir-aggregator", "topics", "ensure", "--kafka-brokers", w.brokers(),
		"--topics-partitions", "4", "--topics-replication", "1")
	if err := p.Wait(Patience); err != nil {
		w.T.Fatalf("topics ensure: %v\n%s", err, p.Output())
	}
}

// Must ends the test at an error.
func (w *World) Must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatalf("%v", err)
	}
}

// Write puts a policy file in place at once, as an editor or a ConfigMap does.
func (w *World) Write(name, policy string) {
	w.T.Helper()
	hidden := filepath.Join(w.Dir, name+".new")
	w.Must(os.WriteFile(hidden, []byte(policy), 0o600))
	w.Must(os.Rename(hidden, filepath.Join(w.Policies, name)))
}

// AddOwner starts one more aggregator, with further flags.
func (w *World) AddOwner(flags ...string) *Owner {
	w.T.Helper()
	o := &Owner{Name: fmt.Sprintf("aggregator-%d", len(w.Owners)), Admin: w.address()}
	o.Args = []string{
		"run", "--instance", o.Name, "--policies", w.Policies, "--identity-key-file", w.Key,
		"--kafka-brokers", w.brokers(), "--redis-addresses", w.store(),
		"--topics-partitions", "4", "--topics-replication", "1", "--admin-address", "tcp://" + o.Admin,
	}
	o.Args = append(o.Args, flags...)
	w.Owners = append(w.Owners, o)
	w.StartOwner(o)
	return o
}

// StartOwner starts an aggregator that has ended, as it was.
func (w *World) StartOwner(o *Owner) {
	w.T.Helper()
	o.Process = parts.Program(w.T, "weir-aggregator", o.Args...)
}

// AddPod starts one more sidecar, with further flags, and its Envoy. It is of the tests' target unless a flag names one.
func (w *World) AddPod(flags ...string) *Pod {
	w.T.Helper()
	p := &Pod{
		Name: fmt.Sprintf("orders-%d", len(w.Pods)), Socket: parts.SocketPath(w.T), Admin: w.address(),
	}
	p.State = filepath.Join(w.Dir, p.Name)
	w.Must(os.MkdirAll(p.State, 0o750))
	p.Args = []string{
		"run", "--listen", "unix://" + p.Socket, "--identity-key-file", w.Key,
		"--kafka-brokers", w.brokers(), "--pod-namespace", "shop", "--pod-name", p.Name,
		"--state-dir", p.State, "--admin-address", "tcp://" + p.Admin,
	}
	p.Args = append(p.Args, flags...)
	if !slices.Contains(flags, "--target") {
		p.Args = append(p.Args, "--target", Target)
	}
	w.Pods = append(w.Pods, p)
	w.StartSidecar(p)
	p.Envoy = parts.StartEnvoy(w.T, parts.EnvoyOpts{
		Upstream: w.Upstream.Addr(),
		Authz:    &parts.Authz{Address: "unix://" + p.Socket, Timeout: 5 * time.Second, FailureModeAllow: true},
	})
	return p
}

// StartSidecar starts a pod's sidecar that has ended, as it was.
func (w *World) StartSidecar(p *Pod) {
	w.T.Helper()
	p.Sidecar = parts.Program(w.T, "weir-sidecar", p.Args...)
}

func (w *World) address() string {
	w.T.Helper()
	port, err := parts.FreePort()
	w.Must(err)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// Ready waits until every sidecar says that policies and decisions are applied, not degraded.
func (w *World) Ready() {
	w.T.Helper()
	for _, p := range w.Pods {
		w.PodReady(p)
	}
}

// PodReady waits until a pod's sidecar is ready and gives no reason.
func (w *World) PodReady(p *Pod) {
	w.T.Helper()
	parts.Eventually(w.T, Patience, p.Name+" ready", func() error {
		status, body, err := Get("http://" + p.Admin + "/readyz")
		if err != nil {
			return err
		}
		if status != 200 || strings.Contains(body, `"reasons"`) {
			return fmt.Errorf("%d: %s", status, body)
		}
		return nil
	})
}

// Targets are the pods' Envoys as a load asks them.
func (w *World) Targets() []load.Pod {
	out := make([]load.Pod, len(w.Pods))
	for i, p := range w.Pods {
		out[i] = load.Pod{Name: p.Name, Target: load.HTTP(p.Envoy.Addr(), 64)}
	}
	return out
}

// Start sends sources to the pods.
func (w *World) Start(length time.Duration, sources ...load.Source) *load.Run {
	w.T.Helper()
	run, err := load.Start(load.Config{Pods: w.Targets(), Sources: sources, For: length, Outstanding: 512, Seed: 1})
	w.Must(err)
	w.T.Cleanup(run.Stop)
	return run
}
