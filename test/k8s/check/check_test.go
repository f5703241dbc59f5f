package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/parts"
)

const (
	charts = "../../../charts/weir-crds/templates"
	rights = "../../../docs/check.md"
	user   = "checker"
)

// finding is one as --json prints it.
type finding struct {
	Check, Level, Finding, Fix string
}

type report struct {
	Result   string
	Findings []finding
}

func (r report) String() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-8s %-24s %s\n", f.Level, f.Check, f.Finding)
	}
	return b.String()
}

// world is a kube-apiserver with an installation, and weir check as its user.
type world struct {
	*cluster.Cluster
	t          *testing.T
	kubeconfig string
}

// check runs the program, and holds its exit code to its report.
func (w *world) check() report {
	w.t.Helper()
	cmd := parts.Command(w.t, "weir", "check", "--json", "--kubeconfig", w.kubeconfig)
	out, err := cmd.Output()
	var r report
	if bad := json.Unmarshal(out, &r); bad != nil {
		w.t.Fatalf("%v: %s (%v)", bad, out, err)
	}
	var exit *exec.ExitError
	if failed := errors.As(err, &exit); failed != (r.Result == "failed") {
		w.t.Errorf("result %s, and the program ends with %v", r.Result, err)
	}
	return r
}

func (r report) has(check, level, text string) bool {
	for _, f := range r.Findings {
		if f.Check == check && f.Level == level && strings.Contains(f.Finding, text) {
			return level == "ok" || level == "skipped" || f.Fix != ""
		}
	}
	return false
}

// roles are the rights that docs/check.md lists, for the checker: its first table is for weir-system, its second for all.
func roles(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile(rights)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	tables := strings.Split(string(doc), "| group | resource | verbs | names |\n|---|---|---|---|\n")
	if len(tables) != 3 {
		t.Fatalf("%s has %d tables of rights, want 2", rights, len(tables)-1)
	}
	for i, kind := range []string{"Role", "ClusterRole"} {
		fmt.Fprintf(&out, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata: {name: checker%s}\nrules:\n", kind, within(kind))
		for line := range strings.Lines(tables[i+1]) {
			cells := strings.Split(strings.TrimSpace(line), "|")
			if len(cells) != 6 {
				break
			}
			group := strings.TrimSpace(cells[1])
			if group == "core" {
				group = ""
			}
			fmt.Fprintf(&out, "- {apiGroups: [%q], resources: [%s], verbs: [%s], resourceNames: [%s]}\n", group, cells[2], cells[3], cells[4])
		}
		fmt.Fprintf(&out, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %sBinding\nmetadata: {name: checker%s}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: checker}\nsubjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]\n", kind, within(kind), kind, user)
	}
	return out.String()
}

func within(kind string) string {
	if kind == "Role" {
		return ", namespace: weir-system"
	}
	return ""
}

// The programs, as they are once they run; kubelet and controllers are not there to say so.
const installed = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: weir-controller, namespace: weir-system}
spec:
  replicas: 1
  selector: {matchLabels: {app: c}}
  template: {metadata: {labels: {app: c}}, spec: {containers: [{name: weir-controller, image: "example.com/weir-controller:v1"}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: weir-aggregator, namespace: weir-system}
spec:
  replicas: 1
  serviceName: a
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: weir-aggregator, image: "example.com/weir-aggregator:v1"}]}}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: weir-controller, namespace: weir-system}
spec: {holderIdentity: weir-controller-a, leaseDurationSeconds: 15, renewTime: "2999-01-01T00:00:00.000000Z"}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: weir-webhook-a, namespace: weir-system, labels: {kubernetes.io/service-name: weir-webhook}}
addressType: IPv4
endpoints: [{addresses: [10.1.2.3], conditions: {ready: true}}]
ports: [{port: 9443}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "extensionProviders: []"}
`

const orders = `
apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  limits: [{name: all, rates: [{limit: 100, window: 1s}]}]
`

const injected = `
apiVersion: v1
kind: Pod
metadata: {name: orders-a, namespace: shop}
spec:
  initContainers: [{name: weir-sidecar, image: example.com/x, restartPolicy: Always}]
  containers: [{name: app, image: example.com/app}]
`

func secret(namespace string, b byte) string {
	key := strings.Repeat(string(rune(b)), 32)
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: weir-identity, namespace: %s}\nstringData: {identity.key: %q}\n", namespace, key)
}

// status is what the controller says of shop/orders.
func (w *world) status(programmed string) {
	w.t.Helper()
	w.Kubectl(w.t, "-n", "shop", "patch", "quotapolicy", "orders", "--subresource=status", "--type=merge", "-p", fmt.Sprintf(
		`{"status":{"observedGeneration":1,"pods":{"enforcing":0,"total":1,"lagging":["orders-a"]},"conditions":[
		{"type":"Accepted","status":"True","reason":"Accepted","message":"","lastTransitionTime":"2026-11-30T00:00:00Z","observedGeneration":1},
		{"type":"Programmed","status":%q,"reason":"Pending","message":"no pod yet","lastTransitionTime":"2026-11-30T00:00:00Z","observedGeneration":1}]}}`, programmed))
}

func (w *world) ready(workload string, n int) {
	w.t.Helper()
	w.Kubectl(w.t, "-n", "weir-system", "patch", workload, "--subresource=status", "--type=merge", "-p",
		fmt.Sprintf(`{"status":{"replicas":1,"readyReplicas":%d}}`, n))
}

func start(t *testing.T) *world {
	t.Helper()
	c := cluster.Start(t, cluster.Options{CRDs: []string{charts}})
	w := &world{Cluster: c, t: t, kubeconfig: c.KubeconfigFor(t, user)}
	c.Namespace(t, "weir-system", nil)
	c.Namespace(t, "istio-system", nil)
	c.Namespace(t, "shop", map[string]string{"weirproxy.dev/inject": "enabled"})
	c.Namespace(t, "elsewhere", map[string]string{"weirproxy.dev/inject": "enabled"}) // of another installation: no copy, no sidecar
	c.Apply(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: elsewhere}\nspec: {containers: [{name: app, image: example.com/app}]}")
	c.Apply(t, installed)
	w.ready("deployment/weir-controller", 1)
	w.ready("statefulset/weir-aggregator", 1)
	c.Apply(t, secret("weir-system", 'k'))
	c.Apply(t, secret("shop", 'k'))
	c.Apply(t, certificate(t, "weir-webhook.weir-system.svc"))
	c.Apply(t, injected)
	c.Apply(t, orders)
	w.status("True")
	return w
}

func TestCheckOnARealServer(t *testing.T) {
	w := start(t)
	if r := w.check(); r.Result != "ok" || !r.has("kubernetes.definition", "skipped", "may not get customresourcedefinitions.apiextensions.k8s.io") ||
		!r.has("kubernetes.webhook", "skipped", "may not") || !r.has("kubernetes.injection", "skipped", "may not list namespaces") {
		t.Errorf("without any right all is skipped:\n%v", r)
	}
	w.Apply(t, roles(t))
	fine := w.check()
	for _, f := range fine.Findings {
		if f.Level == "failed" || f.Level == "warning" && f.Check != "kubernetes.versions" { // this program's is no release's
			t.Errorf("healthy: %+v", f)
		}
		if strings.Contains(f.Finding, "may not") {
			t.Errorf("docs/check.md lacks a right: %+v", f)
		}
	}
	if !fine.has("kubernetes.definition", "ok", "defined as this program has it") {
		t.Errorf("the schema that kube-apiserver stores is not seen as the chart's:\n%v", fine)
	}
	if !fine.has("kubernetes.injection", "skipped", "not watched by this installation, and asking for sidecars: elsewhere") || !fine.has("kubernetes.injection", "ok", "1 pod in 1 namespace") {
		t.Errorf("another installation's namespace:\n%v", fine)
	}
	for _, tt := range []struct {
		name                string
		breaks, mends       func()
		check, level, found string
	}{
		{"the schema is another one", func() {
			w.Kubectl(t, "patch", "crd", "quotapolicies.weirproxy.dev", "--type=json", "-p",
				`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/targets/maxLength","value":4095}]`)
		}, func() {
			w.Kubectl(t, "patch", "crd", "quotapolicies.weirproxy.dev", "--type=json", "-p",
				`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/targets/maxLength","value":4096}]`)
		}, "kubernetes.definition", "warning", "another version of weir"},
		{"no controller is ready", func() { w.ready("deployment/weir-controller", 0) }, func() { w.ready("deployment/weir-controller", 1) },
			"kubernetes.controller", "failed", "none of 1 replicas is ready"},
		{"the certificate is for another host", func() { w.Apply(t, certificate(t, "other.weir-system.svc")) }, func() { w.Apply(t, certificate(t, "weir-webhook.weir-system.svc")) },
			"kubernetes.webhook", "failed", "kube-apiserver refuses the certificate of weir-webhook.weir-system.svc"},
		{"a pod without a sidecar", func() {
			w.Apply(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: orders-b, namespace: shop}\nspec: {containers: [{name: app, image: example.com/app}]}")
		}, func() { w.Kubectl(t, "-n", "shop", "delete", "pod", "orders-b", "--force") }, "kubernetes.injection", "warning", "1 pod has no sidecar, so nothing of theirs is counted: orders-b"},
		{"a copy is another key", func() { w.Apply(t, secret("shop", 'x')) }, func() { w.Apply(t, secret("shop", 'k')) },
			"kubernetes.identity", "failed", "another key than the installation's in the copy of Secret weir-identity in shop"},
		{"a label of another value", func() { w.Kubectl(t, "label", "--overwrite", "namespace", "shop", "weirproxy.dev/inject=true") },
			func() { w.Kubectl(t, "label", "--overwrite", "namespace", "shop", "weirproxy.dev/inject=enabled") },
			"kubernetes.injection", "warning", "has a value that asks for nothing, in shop (true)"},
		{"a policy is in force nowhere", func() { w.status("False") }, func() { w.status("True") },
			"kubernetes.policies", "failed", "Pending: no pod yet (0 of 1 pods; lagging: orders-a)"},
	} {
		tt.breaks()
		if r := w.check(); !r.has(tt.check, tt.level, tt.found) {
			t.Errorf("%s: want %s of %s, %q:\n%v", tt.name, tt.level, tt.check, tt.found, r)
		}
		tt.mends()
		if r := w.check(); r.Result == "failed" || r.has(tt.check, tt.level, "") {
			t.Errorf("%s: mended, and still:\n%v", tt.name, r)
		}
	}
}
