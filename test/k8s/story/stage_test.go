package story_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/api/v1alpha1/kube"
	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/k8s/istio"
	"github.com/weirproxy/weir/test/k8s/kubelet"
	"github.com/weirproxy/weir/test/parts"
)

const (
	system   = "weir-system"
	patience = 90 * time.Second
	socket   = "/run/weir/check.sock"
)

// stage is what the story plays on.
type stage struct {
	t        *testing.T
	cluster  *cluster.Cluster
	kubelet  *kubelet.Kubelet
	istiod   *istio.Istiod
	kafka    *parts.Kafka
	redis    *parts.Redis
	upstream *parts.Upstream
	fronts   []front
	passed   map[string]int // requests, by caller
}

func start(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, passed: make(map[string]int)}
	s.cluster = cluster.Start(t, cluster.Options{CRDs: []string{istio.CRDs(t)}})
	s.kafka = parts.StartKafka(t, parts.KafkaOpts{})
	s.redis = parts.StartRedis(t, parts.RedisOpts{})
	s.upstream = parts.StartUpstream(t)
	s.cluster.StartControllers(t)
	s.istiod = istio.Start(t, s.cluster)
	asController := s.cluster.KubeconfigFor(t, "system:serviceaccount:"+system+":weir-controller",
		"system:serviceaccounts", "system:serviceaccounts:"+system)
	asCheck := s.cluster.KubeconfigFor(t, "system:serviceaccount:"+system+":weir-check",
		"system:serviceaccounts", "system:serviceaccounts:"+system)
	s.kubelet = kubelet.Start(t, s.cluster, "node-a", kubelet.Options{Flags: func(p *corev1.Pod, program string) []string {
		return s.flags(p, program, asController, asCheck)
	}})
	return s
}

// flags stand for what a pod has and a process of this machine has not: addresses of its own, and an account.
func (s *stage) flags(p *corev1.Pod, program, asController, asCheck string) []string {
	own := func() string {
		port, err := parts.FreePort()
		if err != nil {
			panic(err) // a goroutine of the kubelet's, and nothing can go on
		}
		return fmt.Sprintf("127.0.0.1:%d", port)
	}
	switch program {
	case "weir-aggregator":
		if p.Labels["app.kubernetes.io/component"] == "topics" {
			return nil
		}
		return []string{"--instance=" + p.Name, "--admin-address=tcp://" + own(), "--admin-metrics-address=tcp://" + own()}
	case "weir-controller":
		webhook := own()
		s.cluster.Route(system, "weir-webhook", webhook)
		return []string{"--kubeconfig=" + asController, "--admin-address=tcp://" + own(),
			"--metrics-address=tcp://" + own(), "--injection-address=tcp://" + webhook}
	case "weir":
		return []string{"--kubeconfig=" + asCheck}
	}
	return nil
}

func (s *stage) install() {
	s.helm("install", "weir-crds", chart("weir-crds"), "--namespace", system, "--create-namespace")
	s.helm("install", "weir", chart("weir"), "--namespace", system, "--wait", "--timeout", "120s",
		"--set", "kafka.brokers={"+s.kafka.Addr()+"}", "--set", "redis.addresses={"+s.redis.Addr()+"}",
		"--set", "topics.partitions=4", "--set", "topics.replication=1")
}

// chart is a chart's directory from here, as helm tells a directory from a name.
func chart(name string) string {
	return filepath.Join("..", "..", "..", "charts", name)
}

// limit sets the limit of the policy's rate.
func (s *stage) limit(n int) {
	s.t.Helper()
	s.kubectl("-n", "shop", "patch", "qpol", "orders", "--type=json",
		fmt.Sprintf(`--patch=[{"op": "replace", "path": "/spec/limits/0/rates/0/limit", "value": %d}]`, n))
}

// comes waits for what the policy's status says, as kubectl wait takes it.
func (s *stage) comes(what string) {
	s.t.Helper()
	s.kubectl("-n", "shop", "wait", "qpol/orders", "--for="+what, "--timeout=90s")
}

// front is a pod's Envoy.
type front struct{ pod, url string }

// envoys starts one Envoy a pod: the first is configured by istiod with what weir render prints.
func (s *stage) envoys() {
	for i, p := range s.pods() {
		if i > 0 {
			s.fronts = append(s.fronts, s.plainEnvoy(&p))
			continue
		}
		port, err := parts.FreePort()
		s.must(err)
		out, err := parts.Command(s.t, "weir", "render", "istio-envoyfilter", "--target", "shop/orders", "--check", s.check(&p),
			"--timeout", "5s").Output() // of a machine that is busy
		s.must(err)
		s.apply(istio.Sidecar("shop", "orders", port, s.upstream.Addr()), string(out))
		e := s.istiod.StartEnvoy(s.t, "sidecar", &p)
		e.Await(s.t, "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz")
		s.fronts = append(s.fronts, front{p.Name, fmt.Sprintf("http://127.0.0.1:%d", port)})
	}
}

func (s *stage) plainEnvoy(p *corev1.Pod) front {
	e := parts.StartEnvoy(s.t, parts.EnvoyOpts{Upstream: s.upstream.Addr(), Authz: &parts.Authz{
		Address: s.check(p), Timeout: 5 * time.Second, FailureModeAllow: true,
	}})
	return front{p.Name, e.URL()}
}

// check is where a pod's sidecar answers.
func (s *stage) check(p *corev1.Pod) string {
	return "unix://" + s.kubelet.Path(s.t, p, "weir-sidecar", socket)
}

// replace deletes the pod of the last Envoy and waits for another in its place.
func (s *stage) replace() {
	old := s.fronts[len(s.fronts)-1].pod
	s.kubectl("-n", "shop", "delete", "pod", old, "--timeout=60s")
	s.kubectl("-n", "shop", "rollout", "status", "deployment/orders", "--timeout=90s")
	for _, p := range s.pods() {
		if !slices.ContainsFunc(s.fronts, func(f front) bool { return f.pod == p.Name }) {
			s.fronts[len(s.fronts)-1] = s.plainEnvoy(&p)
		}
	}
}

type answer struct {
	status int
	header http.Header
	body   string
}

var asker = &http.Client{Timeout: 10 * time.Second}

// ask sends a caller's request to a pod.
func (s *stage) ask(pod int, caller string) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.fronts[pod].url+"/orders", nil)
	s.must(err)
	req.Header.Set("x-api-key", caller)
	resp, err := asker.Do(req)
	s.must(err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	s.must(err)
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// slack is what pods may let pass beyond a limit before all of them know that it is reached: what comes within
// one propagation (docs/accuracy.md), here of a caller that asks as fast as it can on a machine that is busy.
const slack = 10

// passes asks all pods in turn until all refuse, and then so many of the caller's requests have passed since
// the story began.
func (s *stage) passes(caller string, want int) {
	s.t.Helper()
	what := fmt.Sprintf("%d requests of %s have passed and no more do", want, caller)
	parts.Eventually(s.t, patience, what, func() error {
		refused := 0
		for pod := range s.fronts {
			switch a := s.ask(pod, caller); a.status {
			case http.StatusOK:
				s.passed[caller]++
			case http.StatusTooManyRequests:
				refused++
			default:
				return fmt.Errorf("pod %d answers %d %s", pod, a.status, a.body)
			}
		}
		if passed := s.passed[caller]; refused < len(s.fronts) || passed < want {
			return fmt.Errorf("%d passed", passed)
		}
		return nil
	})
	if passed := s.passed[caller]; passed > want+slack {
		s.t.Errorf("%d requests of %s passed, want %d to %d", passed, caller, want, want+slack)
	}
}

// pods are the service's, those that end left out, in the order of their names.
func (s *stage) pods() []corev1.Pod {
	s.t.Helper()
	var list corev1.PodList
	s.must(s.cluster.Client.List(s.t.Context(), &list, client.InNamespace("shop")))
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	if len(pods) != 3 {
		s.t.Fatalf("%d pods", len(pods))
	}
	return pods
}

func sidecarOf(p corev1.Pod) *corev1.Container {
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; c.Name == "weir-sidecar" {
			return c
		}
	}
	return nil
}

func (s *stage) status() kube.QuotaPolicyStatus {
	s.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kube.GroupVersion().WithKind("QuotaPolicy"))
	s.must(s.cluster.Client.Get(s.t.Context(), client.ObjectKey{Namespace: "shop", Name: "orders"}, u))
	var p kube.QuotaPolicy
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &p))
	return p.Status
}

// holder is who has the controllers' lease.
func (s *stage) holder() string {
	s.t.Helper()
	var lease coordinationv1.Lease
	s.must(s.cluster.Client.Get(s.t.Context(), client.ObjectKey{Namespace: system, Name: "weir-controller"}, &lease))
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func (s *stage) chapter(title string, f func()) {
	s.t.Helper()
	began := time.Now()
	f()
	if s.t.Failed() {
		s.t.Fatalf("in: %s", title)
	}
	s.t.Logf("%6.1f s  %s", time.Since(began).Seconds(), title)
}

func (s *stage) kubectl(args ...string) string { s.t.Helper(); return s.cluster.Kubectl(s.t, args...) }
func (s *stage) helm(args ...string) string    { s.t.Helper(); return s.cluster.Helm(s.t, args...) }

func (s *stage) apply(documents ...string) {
	s.t.Helper()
	for _, d := range documents {
		s.cluster.Apply(s.t, d)
	}
}

// shows logs a text that people see, which has each of some words.
func (s *stage) shows(what, text string, words ...string) {
	s.t.Helper()
	s.t.Logf("%s:\n%s", what, strings.TrimSpace(text))
	for _, w := range words {
		if !strings.Contains(text, w) {
			s.t.Errorf("%s does not say %q", what, w)
		}
	}
}

func (s *stage) until(what string, f func() bool) {
	s.t.Helper()
	parts.Eventually(s.t, patience, what, func() error {
		if !f() {
			return errors.New("not yet")
		}
		return nil
	})
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}
