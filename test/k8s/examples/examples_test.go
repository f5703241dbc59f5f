// Package examples puts the manifests of examples/services to a real kube-apiserver, injected as the README says.
package examples

import (
	"bytes"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/k8s/crd"
	"github.com/weirproxy/weir/test/parts"
)

// The manifests are strictly valid, one after the other in one namespace; and its pods, with the sidecar, satisfy the
// restricted standard that the namespace enforces.
func TestTheServicesAreAccepted(t *testing.T) {
	c := cluster.Start(t, cluster.Options{CRDs: []string{crd.Dir}})
	for _, language := range []string{"go", "python", "node"} {
		t.Run(language, func(t *testing.T) {
			c.Apply(t, injected(t, c.Kubectl(t, "kustomize", "../../../examples/services/"+language)))
			pod := podOf(t, c, "hello-"+language)
			if err := c.Client.Create(t.Context(), pod.DeepCopy(), client.DryRunAll); err != nil {
				t.Error(err)
			}
			pod.Spec.Containers[0].SecurityContext = nil
			if err := c.Client.Create(t.Context(), pod, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "PodSecurity") {
				t.Errorf("a container that may do anything: %v", err)
			}
		})
	}
	if out := c.Kubectl(t, "-n", "hello", "get", "quotapolicies", "-o", "name"); strings.TrimSpace(out) != "quotapolicy.weirproxy.dev/hello" {
		t.Errorf("policies: %s", out)
	}
}

// injected is what weir inject prints of a stream.
func injected(t *testing.T, stream string) string {
	t.Helper()
	cmd := parts.Command(t, "weir", "inject", "-f", "-", "--image", "registry.example/weir-sidecar:1", "--kafka-brokers", "kafka.example:9092")
	cmd.Stdin = strings.NewReader(stream)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	return string(out)
}

// podOf is a pod as the Deployment's controller would make it.
func podOf(t *testing.T, c *cluster.Cluster, name string) *corev1.Pod {
	t.Helper()
	var d appsv1.Deployment
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "hello", Name: name}, &d); err != nil {
		t.Fatal(err)
	}
	if n := len(d.Spec.Template.Spec.InitContainers); n != 1 {
		t.Fatalf("%d init containers, want the sidecar", n)
	}
	pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
	pod.Namespace, pod.Name = d.Namespace, name
	return pod
}
