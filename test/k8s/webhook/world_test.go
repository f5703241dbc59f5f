package webhook

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/controller/certs"
	injector "github.com/weirproxy/weir/controller/webhook"
	"github.com/weirproxy/weir/internal/inject"
	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/parts"
)

const (
	patience  = 60 * time.Second
	namespace = "weir-system"
)

// world is a cluster with the webhook as the chart installs it.
type world struct {
	*cluster.Cluster
	settings string // the file that the webhook follows
}

// chartOf renders templates of the chart as an installation has them.
func chartOf(t testing.TB, c *cluster.Cluster, templates ...string) string {
	t.Helper()
	return chartWith(t, c, nil, templates...)
}

// chartWith is chartOf with more arguments of helm.
func chartWith(t testing.TB, c *cluster.Cluster, more []string, templates ...string) string {
	t.Helper()
	args := []string{"template", "weir", "../../../charts/weir", "--namespace", namespace,
		"--set", "kafka.brokers={kafka-0.kafka:9092}", "--set", "redis.addresses={redis:6379}", "--set", "identity.existingSecret=weir-identity"}
	for _, template := range templates {
		args = append(args, "--show-only", "templates/"+template)
	}
	return c.Helm(t, append(args, more...)...)
}

// install sets a cluster up with the chart's objects of the webhook, and no replica of it yet.
func install(t testing.TB, o cluster.Options) *world {
	t.Helper()
	o.APIServer = map[string]string{"disable-admission-plugins": ""} // with ServiceAccount, as clusters have it
	c := cluster.Start(t, o)
	c.StartControllers(t)
	c.Namespace(t, namespace, nil)
	c.Apply(t, chartOf(t, c, "injection/webhook.yaml", "injection/service.yaml", "injection/secret.yaml", "serviceaccounts.yaml", "controller/rbac.yaml"))
	w := &world{Cluster: c, settings: filepath.Join(t.TempDir(), "settings.yaml")}
	w.configure(t, nil)
	return w
}

// configure writes the settings as the chart has them, but for change.
func (w *world) configure(t testing.TB, change func(settings map[string]any)) {
	t.Helper()
	var config corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(chartOf(t, w.Cluster, "injection/settings.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	var settings map[string]any
	if err := yaml.Unmarshal([]byte(config.Data["settings.yaml"]), &settings); err != nil {
		t.Fatal(err)
	}
	settings["image"] = "registry.example/weir-sidecar:1" // a release changes it, and not what is tested
	if change != nil {
		change(settings)
	}
	text, err := yaml.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.settings, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// selfManaged are the certificates as the chart has them.
func selfManaged() certs.Config {
	return certs.Config{Mode: certs.SelfManaged, Namespace: namespace, Secret: "weir-webhook-tls", Service: "weir-webhook", Configuration: "weir-injector"}
}

// serve runs one replica, with the rights that the chart gives it, until stop. It returns once kube-apiserver
// reaches it.
func (w *world) serve(t testing.TB, certificates certs.Config) (stop func()) {
	t.Helper()
	config := rest.CopyConfig(w.Config)
	config.Impersonate.UserName = "system:serviceaccount:" + namespace + ":weir-controller"
	live, err := client.NewWithWatch(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	port, err := parts.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	replica, err := injector.New(injector.Config{
		Settings: w.settings, Address: "tcp://" + address, Certificates: certificates,
	}, injector.Dependencies{
		Client: live, Cluster: injector.NewReader(live, live), Registry: prometheus.NewRegistry(), Log: zaptest.NewLogger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- replica.Run(ctx) }()
	w.Route(namespace, "weir-webhook", address)
	stop = func() {
		cancel()
		w.Route(namespace, "weir-webhook", "")
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	w.untilInjected(t)
	return stop
}

// untilInjected returns once a pod that asks for a sidecar would get one.
func (w *world) untilInjected(t testing.TB) {
	t.Helper()
	parts.Eventually(t, patience, "the webhook answers", func() error {
		out, err := w.dryRun(t, "default", probe)
		if err == nil && !strings.Contains(out, inject.Container) {
			return fmt.Errorf("no sidecar: %s", out)
		}
		return err
	})
}

const probe = `
apiVersion: v1
kind: Pod
metadata: {name: probe, labels: {weirproxy.dev/inject: enabled}}
spec: {containers: [{name: envoy, image: e}]}`

// dryRun is what a document would become, as YAML.
func (w *world) dryRun(t testing.TB, namespace, document string) (string, error) {
	t.Helper()
	return w.kubectl(t, document, "create", "--dry-run=server", "-o", "yaml", "-n", namespace, "-f", "-")
}

func (w *world) kubectl(t testing.TB, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := w.Command(t.Context(), t, "kubectl", args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// create makes a pod and returns it as the server has it, with what kubectl printed.
func (w *world) create(t testing.TB, namespace, document string) (*corev1.Pod, string) {
	t.Helper()
	said, err := w.kubectl(t, document, "create", "-n", namespace, "-f", "-")
	if err != nil {
		t.Fatalf("create: %v\n%s", err, said)
	}
	var meta corev1.Pod
	if err := yaml.Unmarshal([]byte(document), &meta); err != nil {
		t.Fatal(err)
	}
	return w.pod(t, namespace, meta.Name), said
}

func (w *world) pod(t testing.TB, namespace, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// podOf waits for the first pod of an application.
func (w *world) podOf(t testing.TB, namespace, app string) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	parts.Eventually(t, patience, "a pod of "+app, func() error {
		err := w.Client.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{"app": app})
		if err == nil && len(pods.Items) == 0 {
			return fmt.Errorf("namespace %s has none", namespace)
		}
		return err
	})
	return &pods.Items[0]
}

// space is a new namespace with a service account for its pods.
func (w *world) space(t testing.TB, name string, labels map[string]string) {
	t.Helper()
	w.Namespace(t, name, labels)
	parts.Eventually(t, patience, "the default service account of "+name, func() error {
		return w.Client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
	})
}

func sidecar(pod *corev1.Pod) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == inject.Container {
				return &list[i]
			}
		}
	}
	return nil
}

func enabled() map[string]string { return map[string]string{inject.Label: inject.Enabled} }
