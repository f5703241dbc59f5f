package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weirproxy/weir/test/parts"
)

// controllers are those of kube-controller-manager that make objects from others here: no cloud, no
// storage, no certificates.
var controllers = []string{
	"daemonset-controller", "deployment-controller", "disruption-controller", "endpointslice-controller",
	"garbage-collector-controller", "job-controller", "namespace-controller", "replicaset-controller",
	"serviceaccount-controller", "statefulset-controller",
}

// StartControllers runs kube-controller-manager until the test ends: workloads get pods, Services get
// EndpointSlices, what was deleted goes.
func (c *Cluster) StartControllers(t testing.TB) {
	t.Helper()
	port, err := parts.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	parts.Start(t, "kube-controller-manager", c.Command(context.WithoutCancel(t.Context()), t, "kube-controller-manager",
		"--kubeconfig", c.Kubeconfig,
		"--controllers", strings.Join(controllers, ","),
		"--leader-elect=false",
		"--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(port), "--cert-dir", t.TempDir(),
	))
}
