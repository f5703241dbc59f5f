package webhook

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/internal/inject"
	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/k8s/istio"
	"github.com/weirproxy/weir/test/parts"
)

const (
	istioSpace = "istio-system"
	istioHook  = "istio-sidecar-injector"
)

// kube-apiserver asks webhooks in the order of their configurations' names, and again, where they allow it, when a
// later one changed the pod. Istio's is istiod's own, with the chart's templates.
func TestCase19BesideIstiosInjectorInBothOrders(t *testing.T) {
	w := install(t, cluster.Options{CRDs: []string{istio.CRDs(t)}})
	w.startIstio(t)
	defer w.serve(t, selfManaged())()
	var sidecars []string
	for _, order := range []struct{ name, istio string }{{"Istio first", istioHook}, {"weir first", "z-" + istioHook}} {
		w.renameIstio(t, order.istio)
		for _, native := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, native %v", order.name, native), func(t *testing.T) {
				name := strings.ToLower(fmt.Sprintf("%s-%v", order.name[:4], native))
				labels := enabled()
				labels["istio-injection"] = "enabled"
				w.space(t, name, labels)
				pod, said := w.create(t, name, podWith("p", fmt.Sprintf(`annotations: {sidecar.istio.io/nativeSidecar: "%v"}`, native)))
				t.Logf("%s\n%s", names(pod), said)
				besideIstio(t, pod)
				if got := sidecar(pod).String(); len(sidecars) == 0 || got != sidecars[0] {
					sidecars = append(sidecars, got)
				}
				if native != (place(pod.Spec.InitContainers, "istio-proxy") >= 0) {
					t.Errorf("Istio's proxy is a native sidecar: %v; %s", !native, names(pod))
				}
				w.again(t, name, pod)
			})
		}
	}
	if len(sidecars) != 1 {
		t.Errorf("the sidecar depends on the order:\n%s", strings.Join(sidecars, "\n"))
	}
}

// besideIstio holds what holds in any order.
func besideIstio(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	all := names(pod)
	for _, want := range []string{inject.Container, "istio-proxy", "istio-init", "app", "envoy"} {
		if n := strings.Count(" "+all+" ", " "+want+" "); n != 1 {
			t.Fatalf("%s is there %d times: %s", want, n, all)
		}
	}
	for _, k := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if k.Name == inject.Container {
			continue
		}
		socket := slices.ContainsFunc(k.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "weir-run" })
		if socket != (k.Name == "istio-proxy") {
			t.Errorf("%s has the socket: %v", k.Name, socket)
		}
	}
	if order := strings.Fields(all); slices.Index(order, inject.Container) > slices.Index(order, "istio-proxy") {
		t.Errorf("Envoy starts before the sidecar and ends after it: %s", all)
	}
	if pod.Annotations["sidecar.istio.io/status"] == "" || pod.Annotations[inject.AnnotationRecord] == "" {
		t.Errorf("annotations %v", pod.Annotations)
	}
}

// again makes a pod of what became of the first: what is injected stays as it is.
func (w *world) again(t *testing.T, namespace string, pod *corev1.Pod) {
	t.Helper()
	next := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "again", Namespace: namespace, Labels: pod.Labels, Annotations: pod.Annotations}, Spec: *pod.Spec.DeepCopy()}
	if err := w.Client.Create(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if got, want := sidecar(next).String(), sidecar(pod).String(); got != want {
		t.Errorf("once more the sidecar is\n%s\nwant\n%s", got, want)
	}
	besideIstio(t, next)
}

func names(pod *corev1.Pod) string {
	var out []string
	for _, k := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		out = append(out, k.Name)
	}
	return strings.Join(out, " ")
}

func place(list []corev1.Container, name string) int {
	return slices.IndexFunc(list, func(k corev1.Container) bool { return k.Name == name })
}

// startIstio runs an istiod that injects, until the test ends.
func (w *world) startIstio(t *testing.T) {
	t.Helper()
	w.Namespace(t, istioSpace, nil)
	manifests := filepath.Join(filepath.Dir(istio.CRDs(t)), "..", "..")
	w.Apply(t, w.Helm(t, "template", "istiod", filepath.Join(manifests, "istio-control", "istio-discovery"), "--namespace", istioSpace,
		"--show-only", "templates/istiod-injector-configmap.yaml", "--show-only", "templates/configmap.yaml",
		"--show-only", "templates/mutatingwebhook.yaml", "--show-only", "templates/service.yaml"))
	var addresses [5]string
	for i := range addresses {
		port, err := parts.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		addresses[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	cmd := w.Command(context.WithoutCancel(t.Context()), t, "pilot-discovery", "discovery", "--kubeconfig", w.Kubeconfig,
		"--grpcAddr", addresses[0], "--httpAddr", addresses[1], "--monitoringAddr", addresses[2], "--secureGRPCAddr", addresses[3],
		"--httpsAddr", addresses[4], "--ctrlz_port", "0", "--profile=false", "--log_output_level", "default:info")
	cmd.Dir = t.TempDir()
	cmd.Env = append(cmd.Env, "POD_NAMESPACE="+istioSpace, "POD_NAME=istiod-0", "REVISION=default", "PILOT_CERT_PROVIDER=istiod",
		"INJECTION_WEBHOOK_CONFIG_NAME="+istioHook, "VALIDATION_WEBHOOK_CONFIG_NAME=", "ENABLE_NATIVE_SIDECARS=true")
	parts.Start(t, "istiod", cmd)
	w.Route(istioSpace, "istiod", addresses[4])
	w.untilIstio(t)
}

// untilIstio returns once a pod would get Istio's proxy.
func (w *world) untilIstio(t *testing.T) {
	t.Helper()
	asks := strings.Replace(probe, "weirproxy.dev/inject: enabled", `sidecar.istio.io/inject: "true"`, 1)
	parts.Eventually(t, patience, "istiod injects", func() error {
		out, err := w.dryRun(t, "default", asks)
		if err == nil && !strings.Contains(out, "istio-proxy") {
			return fmt.Errorf("no proxy: %s", out)
		}
		return err
	})
}

// renameIstio gives Istio's configuration a name, and so its place.
func (w *world) renameIstio(t *testing.T, name string) {
	t.Helper()
	list := &admissionregistrationv1.MutatingWebhookConfigurationList{}
	if err := w.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		old := &list.Items[i]
		if !strings.HasSuffix(old.Name, istioHook) || old.Name == name {
			continue
		}
		next := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: old.Labels}, Webhooks: old.Webhooks}
		if err := w.Client.Create(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		if err := client.IgnoreNotFound(w.Client.Delete(t.Context(), old)); err != nil {
			t.Fatal(err)
		}
		w.untilIstio(t)
	}
}
