package kubelet_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/internal/inject"
	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/k8s/kubelet"
	"github.com/weirproxy/weir/test/parts"
	"github.com/weirproxy/weir/test/world"
)

const patience = 90 * time.Second

const threeAnHour = "  - {name: each-client, counters: [Client], rates: [{limit: 3, window: 1h}]}\n"

type node struct {
	*kubelet.Kubelet
	cluster *cluster.Cluster
	world   *world.World
}

// Pods that the injection engine made run for real, in both of its modes.
func TestSidecarsRun(t *testing.T) {
	n := &node{cluster: cluster.Start(t, cluster.Options{})}
	n.world = world.Settled(t, 0, 1, world.Policy(threeAnHour))
	n.Kubelet = kubelet.Start(t, n.cluster, "node-a", kubelet.Options{})
	n.cluster.Namespace(t, "shop", nil)
	t.Run("a pod waits for its Secrets", n.waits)
	t.Run("native", func(t *testing.T) { n.life(t, "native", inject.Native) })
	t.Run("plain", func(t *testing.T) { n.life(t, "plain", inject.Plain) })
	t.Run("a command that ends", n.ends)
}

func (n *node) waits(t *testing.T) {
	p := n.create(t, "native", inject.Native)
	parts.Eventually(t, patience, "the reason", func() error {
		if err := n.Waits(p); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it waits for %w", err)
		}
		return nil
	})
	if n.get(t, p); p.Status.Phase != corev1.PodPending {
		t.Errorf("the pod is %s", p.Status.Phase)
	}
	key, err := os.ReadFile(n.world.Key)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "weir-identity"}, Data: map[string][]byte{"identity.key": key}}
	if err := n.cluster.Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	n.await(t, p, "ready", func() bool { return ready(p) })
	n.remove(t, p)
}

// life is that of a pod: it gets ready and enforces, its status follows its program, it ends in order.
func (n *node) life(t *testing.T, name string, mode string) {
	p := n.create(t, name, mode)
	n.await(t, p, "ready", func() bool { return ready(p) })
	n.enforces(t, p)

	process := n.Process(t, p, inject.Container)
	if err := process.Pause(); err != nil {
		t.Fatal(err)
	}
	n.await(t, p, "not ready while it is frozen", func() bool { return !ready(p) })
	if err := process.Resume(); err != nil {
		t.Fatal(err)
	}
	n.await(t, p, "ready again", func() bool { return ready(p) })

	process.Kill()
	n.await(t, p, "started again", func() bool { return restarts(p) == 1 && ready(p) })
	process = n.Process(t, p, inject.Container)
	n.remove(t, p)
	if code := process.ExitCode(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// enforces asks through an Envoy on the pod's socket.
func (n *node) enforces(t *testing.T, p *corev1.Pod) {
	t.Helper()
	socket := n.Path(t, p, inject.Container, "/run/weir/check.sock")
	e := parts.StartEnvoy(t, parts.EnvoyOpts{Authz: &parts.Authz{Address: "unix://" + socket, Timeout: 5 * time.Second}})
	passed := 0
	for n.world.Send(e, http.MethodGet, "/orders", "x-api-key", p.Name).Status == http.StatusOK {
		if passed++; passed > 3 {
			break
		}
	}
	if passed != 3 {
		t.Errorf("%d requests passed, want 3", passed)
	}
}

// A pod whose program ends by itself has succeeded, or failed.
func (n *node) ends(t *testing.T) {
	for command, want := range map[string]corev1.PodPhase{"version": corev1.PodSucceeded, "no-such-command": corev1.PodFailed} {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: command},
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{
				{Name: "tool", Image: "registry.example/weir:1", Args: []string{command}},
			}},
		}
		if err := n.cluster.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		n.await(t, p, string(want), func() bool { return p.Status.Phase == want })
		n.remove(t, p)
	}
}

// create creates an injected pod, with probes that look more often.
func (n *node) create(t *testing.T, name string, mode string) *corev1.Pod {
	t.Helper()
	s := inject.DefaultSettings()
	s.Image, s.Mode, s.Drain = "registry.example/weir-sidecar:1", mode, 3*time.Second
	s.Kafka.Brokers = []string{n.world.Kafka.Addr()}
	e, err := inject.New(s)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := e.Stream([]byte(`
apiVersion: v1
kind: Pod
metadata: {name: `+name+`, namespace: shop, labels: {app: orders}, annotations: {weirproxy.dev/target: Service/orders}}
spec: {containers: [{name: app, image: example}]}
`), inject.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n.cluster.Apply(t, strings.NewReplacer("periodSeconds: 5", "periodSeconds: 1", "failureThreshold: 6", "failureThreshold: 1",
		"timeoutSeconds: 5", "timeoutSeconds: 2").Replace(string(out)))
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

func (n *node) get(t *testing.T, p *corev1.Pod) {
	t.Helper()
	if err := n.cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
}

func (n *node) await(t *testing.T, p *corev1.Pod, what string, is func() bool) {
	t.Helper()
	parts.Eventually(t, patience, what, func() error {
		if n.get(t, p); !is() {
			return fmt.Errorf("%+v, waits: %w", p.Status, n.Waits(p))
		}
		return nil
	})
}

// remove deletes a pod and waits until it is gone.
func (n *node) remove(t *testing.T, p *corev1.Pod) {
	t.Helper()
	if err := n.cluster.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	parts.Eventually(t, patience, "gone", func() error {
		err := n.cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// restarts is how often the sidecar was started again.
func restarts(p *corev1.Pod) int32 {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == inject.Container {
				return list[i].RestartCount
			}
		}
	}
	return 0
}
