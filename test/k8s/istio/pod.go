package istio

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/parts"
)

// Sidecar has the Envoys of an app's pods listen on a port of loopback and send what they let pass to
// another. The mesh's services stay known to them. Their own listener for calls to these is on a second
// address of loopback, so that it is not in the way of what serves on 127.0.0.1.
func Sidecar(namespace, app string, port int, upstream string) string {
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  workloadSelector: {labels: {app: %[2]s}}
  ingress:
  - {port: {number: %[3]d, protocol: HTTP, name: http}, bind: 127.0.0.1, captureMode: NONE, defaultEndpoint: %[4]q}
  egress:
  - {bind: 127.0.0.2, captureMode: NONE, hosts: ["./*"]}
`, namespace, app, port, upstream)
}

// Pod creates a pod of an app and waits until it has an address. The cluster plays a node.
func Pod(t testing.TB, c *cluster.Cluster, namespace, name string, labels map[string]string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example"}}},
	}
	if err := c.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	parts.Eventually(t, patience, name+" has an address", func() error {
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if p.Status.PodIP == "" {
			return errors.New("none")
		}
		return nil
	})
	return p
}
