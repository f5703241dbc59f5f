package main

import (
	"strings"
	"testing"
)

const manifest = `# kept
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders}
spec: {template: {metadata: {labels: {app: orders}}, spec: {containers: [{name: envoy, image: envoy}]}}}
`

const injectSettings = `image: registry.example/weir-sidecar:1
kafka: {brokers: ["kafka.example:9092"]}
`

func injecting(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	o := weir(t, stdin, args...)
	return o.code, o.out, o.err
}

func TestInjectWritesManifestsToStdoutAndTheReportToStderr(t *testing.T) {
	code, out, errs := injecting(t, manifest, "inject", "-f", "-", "--settings", write(t, "weir.yaml", injectSettings), "-n", "shop", "--report")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	first, _, _ := strings.Cut(manifest, "---")
	if !strings.HasPrefix(out, first) || !strings.Contains(out, "name: weir-sidecar") {
		t.Errorf("wrote:\n%s", out)
	}
	for _, want := range []string{"document 1: ConfigMap shop/c: passed through", "document 2: Deployment shop/orders: injected: a native sidecar"} {
		if !strings.Contains(errs, want) {
			t.Errorf("the report lacks %q:\n%s", want, errs)
		}
	}
	code, back, errs := injecting(t, out, "uninject", "-f", "-")
	if code != 0 || strings.Contains(back, "weir") || errs != "" {
		t.Errorf("uninject: exit code %d: %s\n%s", code, errs, back)
	}
}

func TestInjectsFlagsHoldOverItsSettings(t *testing.T) {
	code, out, errs := injecting(t, manifest, "inject", "-f", "-", "--settings", write(t, "weir.yaml", injectSettings),
		"--image", "other.example/sidecar", "--mode", "Plain", "--kafka-brokers", "a:1,b:2")
	if code != 0 || !strings.Contains(out, "image: other.example/sidecar") || strings.Contains(out, "initContainers") ||
		!strings.Contains(out, "--kafka-brokers=b:2") || strings.Contains(out, "kafka.example") {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
}

func TestInjectSaysWhatIsWrongAndWritesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		in, want string
		code     int
		args     []string
	}{
		"no file":          {manifest, "give -f FILE", 2, nil},
		"no image":         {manifest, "image: \"\" is none", 1, []string{"-f", "-", "--kafka-brokers", "a:1"}},
		"unknown setting":  {manifest, "weir.yaml:1: imag: unknown setting", 1, []string{"-f", "-", "--settings", write(t, "weir.yaml", "imag: x\n")}},
		"missing settings": {manifest, "read the settings", 1, []string{"-f", "-", "--settings", "/nowhere/weir.yaml"}},
		"missing file":     {manifest, "read the manifests", 1, []string{"-f", "/nowhere/a.yaml", "--image", "i", "--kafka-brokers", "a:1"}},
		"bad document":     {manifest + "---\na: [\n", "document 3: no YAML", 1, []string{"-f", "-", "--image", "i", "--kafka-brokers", "a:1"}},
	} {
		code, out, errs := injecting(t, tt.in, append([]string{"inject"}, tt.args...)...)
		if code != tt.code || !strings.Contains(errs, tt.want) || out != "" {
			t.Errorf("%s: exit code %d, want %d with %q: %s%s", name, code, tt.code, tt.want, errs, out)
		}
	}
}
