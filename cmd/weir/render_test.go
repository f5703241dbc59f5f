package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

// renderedFiles are examples, each made by the command in its name's place.
func renderedFiles() map[string]string {
	const policies = " --policies examples/policies/orders.yaml"
	return map[string]string{
		"examples/envoy/envoy.yaml":                 "render envoy --target shop/catalog --policies examples/policies/each-client.yaml",
		"examples/istio/mesh-values.yaml":           "render istio --target shop/orders --mesh-config",
		"examples/istio/custom.yaml":                "render istio --target shop/orders",
		"examples/istio/envoyfilter.yaml":           "render istio-envoyfilter --target shop/orders" + policies,
		"examples/istio/gateway-routes.yaml":        "render istio-envoyfilter --target shop/HTTPRoute/orders --target shop/HTTPRoute/stock --gateway shop/edge",
		"examples/envoy-gateway/envoy-gateway.yaml": "render envoy-gateway --target shop/orders --target shop/stock",
		"examples/services/base/envoy.yaml":         "render envoy --target hello/hello --policies examples/services/base/policy.yaml",
	}
}

// shownConfig is the block of docs/envoy.md below the command that prints it.
var shownConfig = regexp.MustCompile("(?s)(```console\n\\$ bin/weir ([^\n]*)\n```\n\n```yaml\n)(.*?)```")

func TestTheCommandReferenceIsCurrentForRenderedConfiguration(t *testing.T) {
	t.Chdir("../..")
	for file, command := range renderedFiles() {
		o := weir(t, "", strings.Fields(command)...)
		if o.code != 0 {
			t.Fatalf("%s: %s", command, o.err)
		}
		shows(t, file, []byte("# bin/weir "+command+"\n"+o.out))
	}
	const page = "docs/envoy.md"
	before, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	after := shownConfig.ReplaceAllFunc(before, func(block []byte) []byte {
		shown++
		m := shownConfig.FindSubmatch(block)
		o := weir(t, "", strings.Fields(string(m[2]))...)
		if o.code != 0 {
			t.Fatalf("%s: %s", m[2], o.err)
		}
		return bytes.Join([][]byte{m[1], []byte(o.out), []byte("```")}, nil)
	})
	if shown == 0 {
		t.Error("docs/envoy.md shows no configuration")
	}
	shows(t, page, after)
}

// shows wants a file of that text, or writes it with -update.
func shows(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil { //nolint:gosec // documentation, for all to read
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what its command prints: run make docs", file)
	}
}

func TestRenderTakesKindsAndNeedsFromPolicies(t *testing.T) {
	const policies = `apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: deep, namespace: shop}
spec:
  targetRefs: [{kind: Deployment, name: orders}]
  client: [{source: JWTClaim, name: sub}]
  failure: {mode: Deny}
  limits: [{name: each, counters: [Client], cost: {header: X-Cost, default: 1, max: 2}, rates: [{limit: 100, window: 1s}]}]
---
apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: other, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: stock}]
  client: [{source: Header, name: x-stock}]
  limits: [{name: each, counters: [Client], rates: [{limit: 100, window: 1s}]}]
`
	file := write(t, "p.yaml", policies)
	o := weir(t, "", "render", "envoy", "--target", "shop/orders", "--policies", file)
	for _, want := range []string{"shop/Deployment/orders", "exact: x-cost", "jwt_authn", "failure_mode_allow: false"} {
		if o.code != 0 || !strings.Contains(o.out, want) {
			t.Errorf("exit code %d, no %q in %s%s", o.code, want, o.out, o.err)
		}
	}
	if strings.Contains(o.out, "x-stock") {
		t.Error("another target's header is sent")
	}
	o = weir(t, "", "render", "envoy", "--target", "shop/orders", "--policies", file, "--fail", "open", "--all-headers")
	if o.code != 0 || !strings.Contains(o.out, "failure_mode_allow: true") || strings.Contains(o.out, "allowed_headers") {
		t.Errorf("flags do not hold over policies: %s%s", o.out, o.err)
	}
	if o := weir(t, policies, "render", "envoy", "--target", "shop/orders", "--policies", "-"); o.code != 0 {
		t.Errorf("from standard input: %s", o.err)
	}
}

func TestRenderSaysWhatIsWrong(t *testing.T) {
	file := write(t, "p.yaml", goodPolicy)
	for _, c := range []struct {
		code int
		say  string
		args string
	}{
		{2, "--target", "envoy"},
		{2, "namespace/Kind/name", "envoy --target orders"},
		{2, "--check", "envoy --target shop/orders --check nowhere"},
		{2, "want open or closed", "envoy --target shop/orders --fail ajar"},
		{2, "HTTPRoute", "envoy-gateway --target shop/Service/orders"},
		{1, "there are policies for shop/Service/orders", "envoy --target shop/stock --policies " + file},
		{1, "no such file", "envoy --target shop/stock --policies " + file + "x"},
	} {
		o := weir(t, "", append([]string{"render"}, strings.Fields(c.args)...)...)
		if o.code != c.code || !strings.Contains(o.err, c.say) || o.out != "" {
			t.Errorf("%s: exit code %d, %s%s; want %d and %q", c.args, o.code, o.out, o.err, c.code, c.say)
		}
	}
}
