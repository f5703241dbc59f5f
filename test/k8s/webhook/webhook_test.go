package webhook

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/controller/certs"
	"github.com/weirproxy/weir/internal/inject"
	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/parts"
)

var update = flag.Bool("update", false, "write the golden files anew")

// One server for all, as its start takes seconds. The parts stand alone but for the last two.
func TestInjection(t *testing.T) {
	w := install(t, cluster.Options{})
	stop := w.serve(t, selfManaged())
	t.Run("a Deployment's pod", w.deployment)
	t.Run("Case19 plain container", w.plain)
	t.Run("labels", w.labels)
	t.Run("a dry run", w.noSideEffects)
	t.Run("a wrong annotation", w.wrongAnnotation)
	t.Run("the injector's own", w.injectorsOwn)
	t.Run("Pod Security restricted", w.restricted)
	t.Run("LimitRange", w.limitRange)
	t.Run("what would be refused", w.taken)
	t.Run("caBundle is emptied", w.emptiedBundle)
	t.Run("the key leaked", w.leakedKey)
	stop()
	t.Run("a certificate of one's own", w.ownCertificate)
	t.Run("nobody answers", w.down)
	t.Run("uninstalled", w.uninstalled)
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders}
spec:
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec:
      containers:
      - {name: envoy, image: envoy.example/envoy:1}
      - {name: app, image: registry.example/orders:1, ports: [{containerPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: orders}
spec: {selector: {app: orders}, ports: [{port: 80, targetPort: 8080}]}
`

// The pod that a user gets, whole, after all of kube-apiserver's admission and defaults.
func (w *world) deployment(t *testing.T) {
	w.space(t, "shop", enabled())
	w.Apply(t, deployment, "-n", "shop")
	pod := w.podOf(t, "shop", "orders")
	golden(t, pod, "deployment.yaml")
	own := sidecar(pod)
	if own == nil {
		t.Fatal("no sidecar")
	}
	if own.RestartPolicy == nil || *own.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Error("Case 19: it is no native sidecar, which starts before the application and ends after it")
	}
	if own.StartupProbe == nil || own.ReadinessProbe == nil {
		t.Error("Case 19: without probes the application starts before the sidecar listens")
	}
	for _, m := range own.VolumeMounts {
		if strings.HasPrefix(m.Name, "kube-api-access") {
			t.Error("the sidecar has the pod's token for kube-apiserver, which it does not need")
		}
	}
}

// golden compares what is the same at each run.
func golden(t *testing.T, pod *corev1.Pod, name string) {
	t.Helper()
	pod = pod.DeepCopy()
	hash := pod.Labels["pod-template-hash"]
	text, err := yaml.Marshal(map[string]any{
		"metadata": map[string]any{"labels": pod.Labels, "annotations": pod.Annotations}, "spec": pod.Spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`kube-api-access-[a-z0-9]+`).ReplaceAllString(strings.ReplaceAll(string(text), hash, "HASH"), "kube-api-access-x")
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at it with -update and git diff. Got:\n%s", file, got)
	}
}

// The settings file changes under the running webhook: a cluster too old for native sidecars.
func (w *world) plain(t *testing.T) {
	w.configure(t, func(s map[string]any) { s["mode"] = "Plain" })
	defer w.untilInjected(t)
	defer w.configure(t, nil)
	w.space(t, "old", enabled())
	var pod *corev1.Pod
	n := 0
	parts.Eventually(t, patience, "the new settings", func() error {
		n++
		pod, _ = w.create(t, "old", strings.Replace(anyPod, "NAME", fmt.Sprint("p", n), 1))
		if len(pod.Spec.InitContainers) > 0 {
			return fmt.Errorf("still native: %s", pod.Spec.InitContainers[0].Name)
		}
		return nil
	})
	own := sidecar(pod)
	if own == nil || pod.Spec.Containers[0].Name != inject.Container {
		t.Fatalf("the first container is %s", pod.Spec.Containers[0].Name)
	}
	if own.Lifecycle == nil || own.Lifecycle.PostStart == nil || own.Lifecycle.PreStop == nil {
		t.Error("without hooks the application starts before the sidecar listens, and the sidecar ends before the application")
	}
	if got := pod.Annotations["kubectl.kubernetes.io/default-container"]; got != "envoy" && got != "app" {
		t.Errorf("kubectl logs means %q", got)
	}
}

const anyPod = `
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: any}}
spec: {containers: [{name: app, image: a}, {name: envoy, image: e}]}`

func podWith(name, metadata string) string {
	return strings.Replace(strings.Replace(anyPod, "name: NAME,", "name: NAME, "+metadata+",", 1), "NAME", name, 1)
}

// The table of docs/inject.md.
func (w *world) labels(t *testing.T) {
	for name, label := range map[string]string{"in-enabled": inject.Enabled, "in-disabled": inject.Disabled, "in-none": ""} {
		labels := map[string]string{}
		if label != "" {
			labels[inject.Label] = label
		}
		w.space(t, name, labels)
		for pod, want := range map[string]bool{
			"":                label == inject.Enabled,
			inject.Enabled:    label != inject.Disabled,
			inject.Disabled:   false,
			"something-other": false,
		} {
			document := strings.Replace(anyPod, "NAME", "pod-"+strings.ToLower(pod)+"x", 1)
			if pod != "" {
				document = strings.Replace(document, "app: any", "app: any, weirproxy.dev/inject: "+pod, 1)
			}
			got, said := w.create(t, name, document)
			if (sidecar(got) != nil) != want {
				t.Errorf("%s, pod label %q: a sidecar: %v, want %v", name, pod, !want, want)
			}
			if pod == "something-other" && label == inject.Enabled && !strings.Contains(said, "Warning: weir: the pod gets no weir-sidecar") {
				t.Errorf("a mistyped label in %s is not said: %s", name, said)
			}
		}
	}
}

func (w *world) noSideEffects(t *testing.T) {
	w.space(t, "dry", enabled())
	out, err := w.dryRun(t, "dry", strings.Replace(anyPod, "NAME", "p", 1))
	if err != nil || !strings.Contains(out, "name: weir-sidecar") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := w.TryKubectl(t, "get", "pods", "-n", "dry", "-o", "name"); err != nil || out != "" {
		t.Errorf("%v: a dry run made %s", err, out)
	}
}

// Whoever writes the annotation is told at once; a Deployment's author by an event.
func (w *world) wrongAnnotation(t *testing.T) {
	w.space(t, "wrong", enabled())
	out, err := w.kubectl(t, podWith("p", "annotations: {weirproxy.dev/target: orders}"), "create", "-n", "wrong", "-f", "-")
	if err == nil || !strings.Contains(out, "annotation weirproxy.dev/target") || !strings.Contains(out, "denied the request") {
		t.Errorf("%v: %s", err, out)
	}
	w.Apply(t, strings.Replace(deployment, "{labels: {app: orders}}", "{labels: {app: orders}, annotations: {weirproxy.dev/cpu-limit: much}}", 1), "-n", "wrong")
	parts.Eventually(t, patience, "an event that names the annotation", func() error {
		out := w.Kubectl(t, "get", "events", "-n", "wrong", "-o", "jsonpath={.items[*].message}")
		if !strings.Contains(out, "annotation weirproxy.dev/") || !strings.Contains(out, `"much" is no quantity`) {
			return fmt.Errorf("events: %s", out)
		}
		return nil
	})
}

// What a pod says of the sidecar's container and volumes is not asked for.
func (w *world) injectorsOwn(t *testing.T) {
	w.space(t, "own", enabled())
	pod, said := w.create(t, "own", `
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: p}, annotations: {weirproxy.dev/injected: "{}"}}
spec:
  initContainers:
  - name: weir-sidecar
    image: attacker.example/sidecar
    restartPolicy: Always
    args: [run, "--targets=bank/Service/vault"]
    securityContext: {runAsUser: 0, privileged: true}
    env: [{name: WEIR_POD_NAMESPACE, value: bank}]
  containers:
  - {name: app, image: a, volumeMounts: [{name: weir-identity, mountPath: /stolen}]}
  volumes: [{name: weir-identity, secret: {secretName: another}}]`)
	w.space(t, "fresh", enabled())
	fresh, _ := w.create(t, "fresh", strings.Replace(strings.Replace(anyPod, "NAME, labels: {app: any}", "p, labels: {app: p}", 1), ", {name: envoy, image: e}", "", 1))
	got, want := sidecar(pod), sidecar(fresh)
	if got == nil || want == nil || got.String() != want.String() {
		t.Errorf("the sidecar is\n%s\nwant\n%s", got, want)
	}
	if got.Image == "attacker.example/sidecar" || *got.SecurityContext.RunAsUser == 0 {
		t.Error("the pod chose the sidecar's image or user")
	}
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		if m.Name == "weir-identity" {
			t.Error("the application mounts the identity key")
		}
	}
	if i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "weir-identity" }); pod.Spec.Volumes[i].Secret.SecretName != "weir-identity" {
		t.Error("the pod chose the identity key")
	}
	t.Log(said)
}

// The server's own Pod Security admission judges the pod after injection.
func (w *world) restricted(t *testing.T) {
	labels := enabled()
	labels["pod-security.kubernetes.io/enforce"] = "restricted"
	w.space(t, "strict", labels)
	secure := `
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: p}}
spec:
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers: [{name: app, image: a, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]`
	if pod, _ := w.create(t, "strict", secure); sidecar(pod) == nil {
		t.Error("no sidecar")
	}
	if out, err := w.kubectl(t, strings.Replace(anyPod, "NAME", "lax", 1), "create", "-n", "strict", "-f", "-"); err == nil {
		t.Errorf("the namespace is not restricted: %s", out)
	}
}

// What a LimitRange gives a container without limits is the namespace's, and its bounds are checked after the
// webhook has run again.
func (w *world) limitRange(t *testing.T) {
	w.space(t, "limited", enabled())
	w.Apply(t, `
apiVersion: v1
kind: LimitRange
metadata: {name: l}
spec:
  limits:
  - type: Container
    default: {cpu: 500m, memory: 256Mi}
    defaultRequest: {cpu: 100m, memory: 64Mi}
    max: {cpu: "2", memory: 2Gi}`, "-n", "limited")
	pod, _ := w.create(t, "limited", strings.Replace(anyPod, "NAME", "p", 1))
	own := sidecar(pod)
	if own == nil {
		t.Fatal("no sidecar")
	}
	if r := own.Resources; r.Limits.Cpu().String() != "500m" || r.Requests.Cpu().String() != "50m" || r.Limits.Memory().String() != "192Mi" {
		t.Errorf("resources %+v", r)
	}
	w.space(t, "narrow", enabled())
	w.Apply(t, `
apiVersion: v1
kind: LimitRange
metadata: {name: l}
spec: {limits: [{type: Container, default: {cpu: 20m}, max: {cpu: "2"}}]}`, "-n", "narrow")
	pod, _ = w.create(t, "narrow", strings.Replace(anyPod, "NAME", "p", 1))
	if own := sidecar(pod); own == nil || own.Resources.Requests.Cpu().String() != "20m" {
		t.Errorf("with a default limit below the sidecar's request: %+v", own)
	}
}

// Pods that the server refuses if the sidecar is but added to them.
func (w *world) taken(t *testing.T) {
	w.space(t, "taken", enabled())
	pod, said := w.create(t, "taken", `
apiVersion: v1
kind: Pod
metadata: {name: mounted, labels: {app: p}}
spec:
  volumes: [{name: weir, emptyDir: {}}]
  containers: [{name: envoy, image: e, volumeMounts: [{name: weir, mountPath: /run/weir}]}]`)
	if sidecar(pod) == nil || !strings.Contains(said, "volume weir at /run/weir is replaced") {
		t.Errorf("a volume of the pod's own at the socket's place: %s", said)
	}
	pod, said = w.create(t, "taken", `
apiVersion: v1
kind: Pod
metadata: {name: whole, labels: {app: p}}
spec:
  resources: {requests: {cpu: 100m, memory: 100Mi}, limits: {cpu: "1", memory: 128Mi}}
  containers: [{name: envoy, image: e, resources: {requests: {cpu: 100m, memory: 100Mi}}}]`)
	if sidecar(pod) == nil || pod.Spec.Resources.Limits.Memory().String() != "320Mi" || pod.Spec.Resources.Requests.Cpu().String() != "150m" {
		t.Errorf("resources of the pod as a whole: %+v; %s", pod.Spec.Resources, said)
	}
}

// As a chart's upgrade may do.
func (w *world) emptiedBundle(t *testing.T) {
	w.Apply(t, chartOf(t, w.Cluster, "injection/webhook.yaml"))
	w.Kubectl(t, "patch", "mutatingwebhookconfiguration", "weir-injector", "--type=json", "-p",
		`[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":""},{"op":"remove","path":"/webhooks/1/clientConfig/caBundle"}]`)
	w.untilInjected(t)
}

// The authority is made anew when its Secret goes, and the old one is trusted no more.
func (w *world) leakedKey(t *testing.T) {
	bundle := func() string {
		return w.Kubectl(t, "get", "mutatingwebhookconfiguration", "weir-injector", "-o", "jsonpath={.webhooks[*].clientConfig.caBundle}")
	}
	old := bundle()
	w.Kubectl(t, "delete", "secret", "weir-webhook-tls", "-n", namespace)
	parts.Eventually(t, patience, "another authority", func() error {
		if now := bundle(); now == old || now == "" {
			return fmt.Errorf("caBundle is %.60s", now)
		}
		return nil
	})
	w.untilInjected(t)
	w.Apply(t, chartOf(t, w.Cluster, "injection/secret.yaml")) // the chart's upgrade takes it as it is
}

// The chart is told whom to trust, the controller has the pair as files and leaves caBundle alone.
func (w *world) ownCertificate(t *testing.T) {
	secret := &corev1.Secret{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "weir-webhook-tls"}, secret); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range secret.Data {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.Kubectl(t, "delete", "mutatingwebhookconfiguration", "weir-injector")
	w.Apply(t, chartWith(t, w.Cluster, []string{"--set", "injection.certificates.mode=Secret", "--set", "injection.certificates.secret=own",
		"--set-file", "injection.certificates.caBundle=" + filepath.Join(dir, "ca.crt")}, "injection/webhook.yaml"))
	w.serve(t, certs.Config{Mode: certs.Files, Directory: dir})()
}

// A webhook that is down stops no pod.
func (w *world) down(t *testing.T) {
	w.space(t, "alone", enabled())
	if pod, _ := w.create(t, "alone", strings.Replace(anyPod, "NAME", "p", 1)); sidecar(pod) != nil {
		t.Error("who injected it?")
	}
}

func (w *world) uninstalled(t *testing.T) {
	w.Kubectl(t, "delete", "mutatingwebhookconfiguration", "weir-injector")
	if pod := w.podOf(t, "shop", "orders"); sidecar(pod) == nil || pod.DeletionTimestamp != nil {
		t.Error("a pod lost its sidecar")
	}
	w.space(t, "after", enabled())
	if pod, _ := w.create(t, "after", strings.Replace(anyPod, "NAME", "p", 1)); sidecar(pod) != nil {
		t.Error("who injected it?")
	}
}
