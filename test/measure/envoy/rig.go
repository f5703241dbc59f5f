//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/weirproxy/weir/test/load"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

// rig is what is measured: one installation with a sidecar by each server, and an Envoy in front of each variant.
type rig struct {
	*world.World
	options  options
	upstream *parts.Envoy
	own      *world.Pod // by weir's server
	grpc     *world.Pod // by grpc-go
	spare    *world.Pod // another pod of the same target
	noop     *parts.Process
	noopAt   string
	requests map[string][][]byte
}

// policy has three limits that every request is charged to and that none reaches; one more for clients of the spare pod, that
// all of them reach each second; and one that is exhausted, for requests that say so.
const policy = `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{group: "", kind: Service, name: orders}]
  client: [{source: Header, name: x-api-key}]
  response: {headers: %s}
  limits:
  - {name: each-client, counters: [Client], rates: [{limit: 1000000, window: 1s}]}
  - {name: endpoints, counters: [Endpoint], when: {paths: [{type: Prefix, value: /}]}, rates: [{limit: 100000000, window: 1m}]}
  - {name: everything, rates: [{limit: %d, window: 1h}]}
  - {name: hot, counters: [Client], when: {headers: [{name: x-hot, value: "1"}]}, rates: [{limit: 5, window: 1s}]}
  - {name: blocked, when: {headers: [{name: x-blocked, value: "1"}]}, rates: [{limit: 1, window: 1h}]}
`

// mostAnHour is the amount of limit "everything"; a reload changes it.
const mostAnHour = 1_000_000_000

// What a client sends: the fields that a browser or an SDK does.
const head = "GET /orders/7?expand=items HTTP/1.1\r\nhost: shop.example\r\nuser-agent: orders-client/2.4 (linux; amd64)\r\n" +
	"accept: application/json\r\naccept-language: en-GB,en;q=0.8\r\naccept-encoding: gzip, br\r\ncache-control: no-cache\r\n" +
	"x-request-id: 6ba7b810-9dad-11d1-80b4-00c04fd430c8\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n" +
	"referer: https://shop.example/cart\r\ncookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n"

func requestBytes(field string) []byte {
	return []byte(head + field + "\r\n\r\n")
}

func newRig(t parts.T, o options) *rig {
	w := world.New(t)
	r := &rig{World: w, options: o}
	w.Write("p0.yaml", fmt.Sprintf(policy, "IETF", mostAnHour))
	w.Kafka = parts.StartKafka(t, parts.KafkaOpts{})
	w.Redis = parts.StartRedis(t, parts.RedisOpts{})
	w.Upstream = parts.StartUpstream(t)
	w.EnsureTopics()
	w.AddOwner()
	r.own, r.grpc, r.spare = w.AddPod("--server", "own"), w.AddPod("--server", "grpc"), w.AddPod()
	w.Ready()
	r.startNoop()
	r.upstream = parts.StartEnvoy(t, parts.EnvoyOpts{})
	r.requests = map[string][][]byte{
		"refuse":     {requestBytes("x-api-key: blocked\r\nx-blocked: 1")},
		"one client": {requestBytes("x-api-key: client-0")},
	}
	for i := range o.clients {
		r.requests["allow"] = append(r.requests["allow"], requestBytes(fmt.Sprintf("x-api-key: client-%d", i)))
	}
	return r
}

// startNoop starts this program once more, so that its CPU time is its own.
func (r *rig) startNoop() {
	self, err := os.Executable()
	r.Must(err)
	r.noopAt = parts.SocketPath(r.T)
	r.noop = parts.Start(r.T, "noop", exec.Command(self, "-serve-noop", r.noopAt))
	parts.Eventually(r.T, world.Patience, "the no-op listens", func() error {
		_, err := os.Stat(r.noopAt)
		return err
	})
}

// front is an Envoy that asks the address; "": without the filter.
func (r *rig) front(address string, change func(*parts.Authz)) *parts.Envoy {
	opts := parts.EnvoyOpts{Upstream: r.upstream.Addr()}
	if address != "" {
		opts.Authz = &parts.Authz{Address: address, Timeout: 5 * time.Second, StatusOnError: 503}
		if change != nil {
			change(opts.Authz)
		}
	}
	return parts.StartEnvoy(r.T, opts)
}

// background asks the spare pod 2,000 times a second, as 400 clients: at their limit, so that about as many decisions are
// sent to every pod of the target, or far below any.
func (r *rig) background(length time.Duration, hot bool) *load.Run {
	header := make([]map[string]string, 400)
	for i := range header {
		header[i] = map[string]string{"x-api-key": fmt.Sprintf("spare-%d", i)}
		if hot {
			header[i]["x-hot"] = "1"
		}
	}
	run, err := load.Start(load.Config{
		Pods: []load.Pod{{Name: r.spare.Name, Target: load.GRPC("unix://"+r.spare.Socket, 2)}},
		Sources: []load.Source{{Name: "spare", Rate: load.Constant(2000), Make: func(k int) *load.Request {
			return &load.Request{Path: "/", Header: header[k%len(header)]}
		}}},
		For: length, Outstanding: 1024,
	})
	r.Must(err)
	r.T.Cleanup(run.Stop)
	return run
}

// overTCP is a pod whose sidecar listens on loopback.
type overTCP struct {
	pod     *world.Pod
	address string
}

func (r *rig) tcpPod() overTCP {
	port, err := parts.FreePort()
	r.Must(err)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	p := r.AddPod("--listen", "tcp://"+address)
	r.PodReady(p)
	return overTCP{p, address}
}

// threadsPod is a pod whose sidecar is told to use two threads.
func (r *rig) threadsPod() *world.Pod {
	const name = "GOMAXPROCS"
	before, set := os.LookupEnv(name)
	r.Must(os.Setenv(name, "2"))
	p := r.AddPod()
	if set {
		r.Must(os.Setenv(name, before))
	} else {
		r.Must(os.Unsetenv(name))
	}
	r.PodReady(p)
	return p
}

// plainPod is a pod of another target, whose policy differs in that answers carry no fields.
func (r *rig) plainPod() *world.Pod {
	other := strings.ReplaceAll(fmt.Sprintf(policy, "None", mostAnHour), "name: orders", "name: plain")
	r.Write("p1.yaml", other)
	p := r.AddPod("--target", "shop/Service/plain")
	r.PodReady(p)
	return p
}

// reload puts another version of the policy in force.
func (r *rig) reload(n int) { r.Write("p0.yaml", fmt.Sprintf(policy, "IETF", mostAnHour+n)) }

// cpu is what a process has used, to the nanosecond where the kernel keeps schedstat.
func cpu(p *parts.Process) time.Duration {
	dir := fmt.Sprintf("/proc/%d/task", p.PID())
	tasks, err := os.ReadDir(dir)
	var sum, of time.Duration
	for _, task := range tasks {
		b, readErr := os.ReadFile(dir + "/" + task.Name() + "/schedstat")
		if readErr != nil {
			return p.CPU()
		}
		if _, err = fmt.Fscan(bytes.NewReader(b), &of); err != nil {
			return p.CPU()
		}
		sum += of
	}
	if sum == 0 || err != nil {
		return p.CPU()
	}
	return sum
}
