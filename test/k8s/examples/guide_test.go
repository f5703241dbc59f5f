package examples

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/api/v1alpha1/kube"
	"github.com/weirproxy/weir/controller/fleet"
	"github.com/weirproxy/weir/controller/publish"
	"github.com/weirproxy/weir/controller/status"
	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/k8s/crd"
)

var update = flag.Bool("update", false, "write into the guide what kubectl prints")

const guide = "../../../docs/kubernetes.md"

var (
	yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	// shown is a command of the guide and what it prints.
	shown = regexp.MustCompile("(?m)^\\$ (kubectl -n shop get quotapolic.*)\n((?:[^$`].*\n)*)")
	age   = regexp.MustCompile(`(?m) +(AGE|[0-9]+[smh][0-9smh]*)$`)
)

// What the guide shows of a policy's status is what kubectl prints of one that the controller's own code makes: first
// of pods that all enforce it, then of pods of which two do not.
func TestTheGuideShowsWhatKubectlPrints(t *testing.T) {
	c := cluster.Start(t, cluster.Options{CRDs: []string{crd.Dir}})
	c.Namespace(t, "shop", nil)
	page, policy := read(t), ""
	for _, b := range yamlBlock.FindAllStringSubmatch(page, -1) {
		if strings.Contains(b[1], "kind: QuotaPolicy") {
			policy = b[1]
			c.Apply(t, policy)
		}
	}
	if policy == "" {
		t.Fatal("the guide has no policy")
	}
	edited := strings.Replace(policy, "limit: 100", "limit: 200", 1)
	n := 0
	after := shown.ReplaceAllStringFunc(page, func(block string) string {
		m := shown.FindStringSubmatch(block)
		switch n++; n {
		case 1:
			judge(t, c, enforcing("orders-7d9c-4kx2p", 1), enforcing("orders-7d9c-b8m7t", 1), enforcing("orders-7d9c-wq5zn", 1))
		case 2:
			c.Apply(t, edited)
			silent := enforcing("orders-7d9c-wq5zn", 1)
			silent.Report.Stale = true
			judge(t, c, enforcing("orders-7d9c-4kx2p", 2), status.Pod{Name: "orders-66fb-x2vjd"}, silent)
		}
		out := strings.TrimRight(shell(t, c, m[1]), "\n") + "\n"
		if !*update && age.ReplaceAllString(out, "") != age.ReplaceAllString(m[2], "") {
			t.Errorf("$ %s\nprints\n%snot\n%s", m[1], out, m[2])
		}
		return "$ " + m[1] + "\n" + out
	})
	if n != 3 {
		t.Errorf("the guide shows %d answers, want 3", n)
	}
	if *update {
		if err := os.WriteFile(guide, []byte(after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The values that the guide has people write are the chart's.
func TestTheGuidesValuesAreTheCharts(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set: make test-k8s sets it")
	}
	n := 0
	for _, b := range yamlBlock.FindAllStringSubmatch(read(t), -1) {
		if strings.Contains(b[1], "kind: ") {
			continue
		}
		n++
		cmd := exec.Command(filepath.Join(assets, "helm"), "template", "weir", "../../../charts/weir", "--namespace", "weir-system", "--values", "-",
			"--set", "identity.existingSecret=weir-identity") // rendered without the cluster, it has to be named
		cmd.Stdin = strings.NewReader(b[1])
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if n == 0 {
		t.Error("the guide has no values")
	}
}

func read(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// enforcing is a pod that reports a generation; the topic has each one at the offset of its number.
func enforcing(name string, generation int64) status.Pod {
	const target = "shop/Service/orders"
	return status.Pod{Name: name, Targets: []string{target}, Sidecar: true,
		Report: &fleet.Report{Version: generation, Seen: generation, Generation: generation, Targets: []string{target}}}
}

// judge has the policy's status be what the controller makes of these pods.
func judge(t *testing.T, c *cluster.Cluster, pods ...status.Pod) {
	t.Helper()
	var p kube.QuotaPolicy
	if err := yaml.Unmarshal([]byte(c.Kubectl(t, "-n", "shop", "get", "quotapolicy", "orders", "-o", "yaml")), &p); err != nil {
		t.Fatal(err)
	}
	p.Status = status.Make(status.Facts{
		Generation: p.Generation, Spec: &p.Spec, Pods: pods,
		Published: publish.Published{Known: true, Version: p.Generation, Generation: p.Generation},
	}, p.Status, time.Now())
	text, err := yaml.Marshal(map[string]any{"status": p.Status})
	if err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, "-n", "shop", "patch", "quotapolicy", "orders", "--subresource=status", "--type=merge", "--patch="+string(text))
}

// shell runs a command of the guide as it is written there.
func shell(t *testing.T, c *cluster.Cluster, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "HOME="+t.TempDir(),
		"PATH="+filepath.Dir(c.Program(t, "kubectl"))+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}
