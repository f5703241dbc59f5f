package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/zapr"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/api/v1alpha1/kube"
	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/controller"
	"github.com/weirproxy/weir/internal/bus"
	"github.com/weirproxy/weir/internal/embedded"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/k8s/crd"
	"github.com/weirproxy/weir/test/parts"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(zapr.NewLogger(zap.NewNop()))
	goleak.VerifyTestMain(m,
		// The library of Kafka keeps one goroutine of meters for ever, the one of Kubernetes its logs' flusher, and
		// a closed watch of metadata that of which an event was not taken.
		goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),
		goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"))
}

const (
	own      = "weir-system"
	patience = 60 * time.Second
	rules    = "../../../charts/weir/files/controller-rules.yaml"
)

var identityKey = bytes.Repeat([]byte("k"), wirev1.KeySize)

// site is a cluster with weir's rights and Secrets, and a Kafka beside it.
type site struct {
	*cluster.Cluster
	t          *testing.T
	api        client.Client // an administrator's, who knows policies
	kubeconfig string        // the controller's
	broker     *embedded.Kafka
	topics     bus.Topics
	writer     *bus.Writer
	client     *bus.Client
	keys       wirev1.Keys
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Cluster: cluster.Start(t, cluster.Options{CRDs: []string{crd.Dir}}), t: t, topics: bus.Topics{Partitions: 1, Replication: 1}.WithDefaults()}
	scheme := runtime.NewScheme()
	err := errors.Join(clientscheme.AddToScheme(scheme), kube.AddToScheme(scheme))
	if err == nil {
		s.api, err = client.New(s.Config, client.Options{Scheme: scheme})
	}
	if err == nil {
		s.keys, err = wirev1.NewKeys(identityKey)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.grant()
	s.startKafka()
	return s
}

// grant binds the generated rights, and nothing else, to the controller's user.
func (s *site) grant() {
	s.t.Helper()
	s.Namespace(s.t, own, nil)
	generated, err := os.ReadFile(rules)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Apply(s.t, string(generated)+`
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: weir-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: weir-controller}
subjects: [{kind: User, name: weir-controller, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: weir-controller, namespace: weir-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: weir-controller}
subjects: [{kind: User, name: weir-controller, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: v1
kind: Secret
metadata: {name: weir-identity, namespace: weir-system}
stringData: {identity.key: one}
---
apiVersion: v1
kind: Secret
metadata: {name: weir-kafka, namespace: weir-system}
stringData: {password: two}
`)
	s.kubeconfig = s.KubeconfigFor(s.t, "weir-controller")
}

func (s *site) startKafka() {
	s.t.Helper()
	var err error
	if s.broker, err = embedded.StartKafka(""); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.broker.Close)
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if s.client, err = bus.Dial(ctx, s.kafka(), zap.NewNop()); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.client.Ensure(ctx, s.topics, false); err != nil {
		s.t.Fatal(err)
	}
	s.writer = bus.NewWriter(s.client, bus.WriterConfig{Depth: map[string]int{s.topics.Status: 100}})
	s.t.Cleanup(s.writer.Close)
}

func (s *site) kafka() bus.Config { return bus.Config{Brokers: []string{s.broker.Addr()}} }

// replica is a running controller.
type replica struct {
	*controller.Controller
	stop  func()
	lines *log
}

// start runs a controller; it ends with the test, if stop was not called before it.
func (s *site) start(change func(*controller.Config)) *replica {
	s.t.Helper()
	cfg := controller.Config{
		Namespace: own, Kubeconfig: s.kubeconfig, IdentityKey: identityKey, Kafka: s.kafka(), Topics: s.topics,
		LeaderElection: config.LeaderElection{Enabled: true, Lease: "weir-controller"}, Lease: 3 * time.Second,
		Secrets: config.Secrets{Identity: "weir-identity", Kafka: "weir-kafka"}, Grace: 10 * time.Second,
	}
	if change != nil {
		change(&cfg)
	}
	r := &replica{lines: &log{}}
	var err error
	if r.Controller, err = controller.New(cfg, r.lines.logger()); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("the controller ended with %v", err)
		}
		if strings.Contains(r.lines.String(), "forbidden") {
			s.t.Error("the controller lacks a right")
		}
		if s.t.Failed() {
			s.t.Logf("the controller's log:\n%s", r.lines)
		}
	}
	s.t.Cleanup(r.stop)
	return r
}

// eventually waits for a condition; what is left to wait for is the error.
func (s *site) eventually(what string, check func() error) {
	s.t.Helper()
	parts.Eventually(s.t, patience, what, check)
}

func (s *site) policy(name string) *kube.QuotaPolicy {
	s.t.Helper()
	p := &kube.QuotaPolicy{}
	namespace, name, _ := strings.Cut(name, "/")
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, p); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// becomes waits until a condition has a reason, for the policy's newest generation.
func (s *site) becomes(name, condition, reason string) *kube.QuotaPolicy {
	s.t.Helper()
	var p *kube.QuotaPolicy
	s.eventually(fmt.Sprintf("%s is %s %s", name, condition, reason), func() error {
		p = s.policy(name)
		c := meta.FindStatusCondition(p.Status.Conditions, condition)
		if c == nil || c.Reason != reason || c.ObservedGeneration != p.Generation {
			return fmt.Errorf("status %+v of generation %d", p.Status, p.Generation)
		}
		return nil
	})
	return p
}

// published reads the policy topic from its start: the newest record of each key.
func (s *site) published() map[string]*policy.Policy {
	s.t.Helper()
	out := map[string]*policy.Policy{}
	ctx, stop := context.WithTimeout(s.t.Context(), patience)
	defer stop()
	reader := bus.NewReader(s.client, bus.ReaderConfig{
		Topic: s.topics.Policies, Partitions: map[int32]bus.From{0: {}}, MaxWait: 20 * time.Millisecond,
		Handle: func(m bus.Message) {
			key, err := policy.ParseKey(string(m.Key))
			if err != nil || m.Value == nil {
				delete(out, string(m.Key))
				return
			}
			var msg wirev1.PolicyMessage
			if err := proto.Unmarshal(m.Value, &msg); err != nil {
				s.t.Error(err)
				return
			}
			p, err := policy.Decode(key, m.Offset, msg.GetPolicy())
			if err != nil {
				s.t.Error(err)
				return
			}
			out[key.String()] = p
		},
		CaughtUp: func(int32) { stop() },
	})
	if err := reader.Run(ctx); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// report plays a sidecar that says which version of a policy it has in force.
func (s *site) report(pod string, epoch uint64, p *policy.Policy, targets ...string) {
	s.t.Helper()
	s.send(pod, &wirev1.PodStatus{
		Pod: pod, PodEpoch: epoch, Targets: targets, Ready: true, KeyFingerprint: s.keys.Fingerprint(),
		Policies: []*wirev1.AppliedPolicy{{Key: p.Key.String(), Version: p.Version, Seen: p.Version, Generation: p.Generation}},
	})
}

func (s *site) send(pod string, status *wirev1.PodStatus) {
	s.t.Helper()
	value, err := proto.Marshal(status)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(s.topics.Status, pod, value)
}

// write appends a record; nil is a tombstone.
func (s *site) write(topic, key string, value []byte) {
	s.t.Helper()
	acked := make(chan bus.Ack, 1)
	if err := s.writer.Send(topic, 0, []byte(key), value, func(a bus.Ack) { acked <- a }); err != nil {
		s.t.Fatal(err)
	}
	if a := <-acked; a.Err != nil {
		s.t.Fatal(a.Err)
	}
}

// publishByHand writes what weir apply does: the object's policy under the same name, of origin cli.
func (s *site) publishByHand(name string) {
	s.t.Helper()
	key, msg, err := policy.Encode(policy.OriginCLI, s.policy(name).Document(), s.keys, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	value, err := proto.Marshal(&wirev1.PolicyMessage{Body: &wirev1.PolicyMessage_Policy{Policy: msg}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(s.topics.Policies, key.String(), value)
}

// withdrawByHand takes it away again.
func (s *site) withdrawByHand(name string) {
	s.t.Helper()
	s.write(s.topics.Policies, policy.OriginCLI+"/"+name, nil)
}

// runningPod makes a pod with a sidecar and says, as a kubelet does, that it runs.
func (s *site) runningPod(namespace, name string, labels map[string]string) {
	s.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "weir-sidecar", Image: "x", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
			Containers:     []corev1.Container{{Name: "app", Image: "x"}},
		},
	}
	if err := s.api.Create(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
	p.Status.Phase = corev1.PodRunning
	if err := s.api.Status().Update(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
}

// restClient acts as the controller.
func (s *site) restClient() client.Client {
	s.t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}
