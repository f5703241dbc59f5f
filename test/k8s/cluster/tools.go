package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Program is the path of one of the control plane's programs, such as pilot-discovery.
func (c *Cluster) Program(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(c.assets, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("not installed: run make kubernetes (%v)", err)
	}
	return path
}

// Command is one of the control plane's programs not yet started, whose KUBECONFIG is an administrator's
// and whose files outside the test's directory are none.
func (c *Cluster) Command(ctx context.Context, t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, c.Program(t, name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HOME="+c.home,
		"HELM_CACHE_HOME="+c.home, "HELM_CONFIG_HOME="+c.home, "HELM_DATA_HOME="+c.home)
	return cmd
}

// TryKubectl runs kubectl as an administrator and returns all that it prints.
func (c *Cluster) TryKubectl(t testing.TB, args ...string) (string, error) {
	t.Helper()
	out, err := c.Command(t.Context(), t, "kubectl", args...).CombinedOutput()
	return string(out), err
}

// Kubectl is TryKubectl that fails the test.
func (c *Cluster) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return c.must(t, "kubectl", "", args)
}

// Apply is kubectl apply of a text, with strict validation.
func (c *Cluster) Apply(t testing.TB, documents string, args ...string) string {
	t.Helper()
	return c.must(t, "kubectl", documents, append([]string{"apply", "--validate=strict", "-f", "-"}, args...))
}

// TryHelm runs helm as an administrator and returns all that it prints.
func (c *Cluster) TryHelm(t testing.TB, args ...string) (string, error) {
	t.Helper()
	out, err := c.Command(t.Context(), t, "helm", args...).CombinedOutput()
	return string(out), err
}

// Helm is TryHelm that fails the test.
func (c *Cluster) Helm(t testing.TB, args ...string) string {
	t.Helper()
	return c.must(t, "helm", "", args)
}

func (c *Cluster) must(t testing.TB, program, stdin string, args []string) string {
	t.Helper()
	cmd := c.Command(t.Context(), t, program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Namespace creates one with labels; none: nil.
func (c *Cluster) Namespace(t testing.TB, name string, labels map[string]string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if err := c.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(fmt.Errorf("create namespace %s: %w", name, err))
	}
}
