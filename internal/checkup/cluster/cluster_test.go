package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/checkup"
)

var update = flag.Bool("update", false, "write the schema's hash anew")

const chart = "../../../charts/weir-crds/templates/weirproxy.dev_quotapolicies.yaml"

// The program knows the schema of the chart that it is released with.
func TestTheSchemaIsTheCharts(t *testing.T) {
	d, err := decoded[definition](read(t, chart).Object)
	if err != nil {
		t.Fatal(err)
	}
	hash := sum(d.Spec.Versions[0].Schema.OpenAPIV3Schema)
	if *update {
		if err := os.WriteFile("schema.sha256", []byte(hash+"\n"), 0o644); err != nil { //nolint:gosec // for all to read
			t.Fatal(err)
		}
		return
	}
	if hash != strings.TrimSpace(schemaHash) {
		t.Errorf("schema.sha256 is of another schema than %s; go test ./internal/checkup/cluster -run Schema -update writes it", chart)
	}
}

func read(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return &unstructured.Unstructured{Object: m}
}

// A description says nothing that a schema accepts or refuses; a property of that name does.
func TestHashOfASchemaLeavesDescriptionsOut(t *testing.T) {
	of := func(text string) string {
		var m map[string]any
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		return sum(m)
	}
	a := of(`{type: object, description: one, properties: {description: {type: string, description: two}}}`)
	if a != of(`{type: object, description: other, properties: {description: {type: string}}}`) {
		t.Error("another description is another schema")
	}
	if a == of(`{type: object, properties: {}}`) || a == of(`{type: object, properties: {description: {type: integer}}}`) {
		t.Error("another property is not seen")
	}
}

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// world is a healthy installation on a fake kube-apiserver.
type world struct {
	t      *testing.T
	client *fake.FakeDynamicClient
	cfg    Config
}

// sets are the kinds that weir check reads, with the kinds of their lists.
func sets() map[schema.GroupVersionResource]string {
	out := map[schema.GroupVersionResource]string{}
	for k, list := range map[kind]string{
		definitions(): "CustomResourceDefinitionList", deployments(): "DeploymentList", statefulSets(): "StatefulSetList", leases(): "LeaseList",
		webhooks(): "MutatingWebhookConfigurationList", secrets(): "SecretList", endpointSlices(): "EndpointSliceList", namespaces(): "NamespaceList",
		pods(): "PodList", quotaPolicies(): "QuotaPolicyList", configMaps(): "ConfigMapList", authorizationPolicies(): "AuthorizationPolicyList",
		serviceEntries(): "ServiceEntryList", envoyFilters(): "EnvoyFilterList", securityPolicies(): "SecurityPolicyList", backends(): "BackendList",
	} {
		out[k.GroupVersionResource] = list
	}
	return out
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, client: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), sets())}
	w.cfg = Config{
		Client: w.client, Namespace: "weir-system", IstioNamespace: "istio-system", IdentitySecret: "weir-identity", CertificateSecret: "weir-webhook-tls", Version: "v1.2.3",
		Now: func() time.Time { return now },
	}
	crd := read(t, chart)
	crd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	w.put(definitions(), crd)
	for k, texts := range map[kind][]string{
		deployments():  {workload("Deployment", "weir-controller")},
		statefulSets(): {workload("StatefulSet", "weir-aggregator")},
		leases():       {`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: weir-controller, namespace: weir-system}, spec: {holderIdentity: weir-controller-a, leaseDurationSeconds: 15, renewTime: "2026-11-30T11:59:58.000000Z"}}`},
		namespaces():   {namespace("shop", "enabled"), namespace("other", ""), namespace("weir-system", "")},
		pods(): {pod("orders-a", "{}", "[{name: weir-sidecar, image: x}]"), pod("batch", "{weirproxy.dev/inject: disabled}", "[]"),
			strings.Replace(pod("elsewhere", "{}", "[]"), "namespace: shop", "namespace: other", 1)},
		endpointSlices():        {`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: weir-webhook-x, namespace: weir-system, labels: {kubernetes.io/service-name: weir-webhook}}, endpoints: [{addresses: [10.0.0.1], conditions: {ready: true}}]}`},
		secrets():               {secret("weir-system", 0), secret("shop", 0)},
		quotaPolicies():         {policy("True", "Programmed", "True", 2)},
		configMaps():            {`{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: istio-system}, data: {mesh: "extensionProviders: [{name: weir-shop, envoyExtAuthzGrpc: {service: shop/check.weir.internal, port: 9191, timeout: 0.150s}}]"}}`},
		authorizationPolicies(): {`{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {name: weir-orders, namespace: shop}, spec: {action: CUSTOM, provider: {name: weir-shop}, rules: [{}]}}`},
		serviceEntries():        {`{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: weir, namespace: shop}, spec: {hosts: [check.weir.internal], ports: [{number: 9191, name: grpc, protocol: GRPC}]}}`},
		envoyFilters():          {filter},
		securityPolicies():      {gatewayPolicy},
		backends():              {`{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: Backend, metadata: {name: weir, namespace: shop}, status: {conditions: [{type: Accepted, status: "True"}]}}`},
	} {
		for _, text := range texts {
			w.put(k, parse(t, text))
		}
	}
	ca, cert := certificates(t, now.Add(-time.Hour), now.Add(60*24*time.Hour), "weir-webhook.weir-system.svc")
	w.certificate(cert)
	w.put(webhooks(), parse(t, webhook(ca)))
	return w
}

func workload(kind, name string) string {
	return `{apiVersion: apps/v1, kind: ` + kind + `, metadata: {name: ` + name + `, namespace: weir-system}, spec: {replicas: 2, template: {spec: {containers: [{name: ` + name +
		`, image: "example.com:5000/` + name + `:1.2.3"}]}}}, status: {readyReplicas: 2}}`
}

func pod(name, labels, init string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `, namespace: shop, labels: ` + labels + `}, spec: {initContainers: ` + init + `, containers: [{name: app, image: x}]}, status: {phase: Running}}`
}

// secret holds an identity key of one repeated byte.
func secret(namespace string, b byte) string {
	key := make([]byte, wirev1.KeySize)
	for i := range key {
		key[i] = b
	}
	return `{apiVersion: v1, kind: Secret, metadata: {name: weir-identity, namespace: ` + namespace + `}, data: {identity.key: "` + base64.StdEncoding.EncodeToString(key) + `"}}`
}

func policy(accepted, reason, programmed string, observed int) string {
	return `{apiVersion: weirproxy.dev/v1alpha1, kind: QuotaPolicy, metadata: {name: orders, namespace: shop, generation: 2}, status: {observedGeneration: ` + string(rune('0'+observed)) +
		`, pods: {enforcing: 1, total: 2, lagging: [orders-b]}, conditions: [{type: Accepted, status: "` + accepted + `", reason: Invalid, message: "spec.limits[0]: no", lastTransitionTime: "2026-11-30T11:00:00Z"}, ` +
		`{type: Programmed, status: "` + programmed + `", reason: ` + reason + `, message: m, lastTransitionTime: "2026-11-30T11:00:00Z"}]}}`
}

const filter = `{apiVersion: networking.istio.io/v1alpha3, kind: EnvoyFilter, metadata: {name: weir-orders, namespace: shop}, spec: {configPatches: [{applyTo: HTTP_FILTER, match: {context: SIDECAR_INBOUND, listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: envoy.filters.http.router}}}}}, patch: {operation: INSERT_BEFORE, value: {name: envoy.filters.http.ext_authz, typed_config: {grpc_service: {envoy_grpc: {cluster_name: weir}}}}}}, {applyTo: CLUSTER, patch: {operation: ADD, value: {name: weir}}}]}}`

const gatewayPolicy = `{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: SecurityPolicy, metadata: {name: weir-orders, namespace: shop}, spec: {extAuth: {grpc: {backendRefs: [{group: gateway.envoyproxy.io, kind: Backend, name: weir}]}, contextExtensions: [{name: weir.target, type: Value, value: shop/HTTPRoute/orders}]}}, status: {ancestors: [{conditions: [{type: Accepted, status: "True"}]}]}}`

// webhook is the chart's; watched are controller.watchNamespaces.
func webhook(ca []byte, watched ...string) string {
	one := func(name, operator string) string {
		only := ""
		if len(watched) > 0 {
			only = "{key: kubernetes.io/metadata.name, operator: In, values: [" + strings.Join(watched, ", ") + "]}, "
		}
		return `{name: ` + name + `.inject.weirproxy.dev, failurePolicy: Ignore, clientConfig: {caBundle: "` + base64.StdEncoding.EncodeToString(ca) + `", service: {name: weir-webhook, namespace: weir-system}}, ` +
			`namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kube-node-lease, weir-system]}, ` + only +
			`{key: weirproxy.dev/inject, operator: ` + operator + `, values: [enabled]}]}}`
	}
	return `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: weir-injector}, webhooks: [` + one("namespace", "In") + ", " + one("pod", "NotIn") + `]}`
}

func namespace(name, label string) string {
	if label != "" {
		label = ", weirproxy.dev/inject: " + label
	}
	return `{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `, labels: {kubernetes.io/metadata.name: ` + name + label + `}}}`
}

// certificates are an authority and a certificate that it signed for host, PEM.
func certificates(t *testing.T, from, to time.Time, host string) (ca, cert []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(c *x509.Certificate, parent *x509.Certificate) []byte {
		c.SerialNumber, c.NotBefore = big.NewInt(1), from
		der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	root := &x509.Certificate{NotAfter: to.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	root.Subject.CommonName = "weir"
	ca = sign(root, root)
	return ca, sign(&x509.Certificate{NotAfter: to, DNSNames: []string{host}}, root)
}

func (w *world) certificate(cert []byte) {
	w.put(secrets(), parse(w.t, `{apiVersion: v1, kind: Secret, metadata: {name: weir-webhook-tls, namespace: weir-system}, data: {tls.crt: "`+base64.StdEncoding.EncodeToString(cert)+`"}}`))
}

// put makes or replaces an object and returns it as it was, nil if there was none.
func (w *world) put(k kind, o *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	r := w.client.Resource(k.GroupVersionResource).Namespace(o.GetNamespace())
	before, err := r.Get(context.Background(), o.GetName(), metav1.GetOptions{})
	if err != nil {
		_, err := r.Create(context.Background(), o, metav1.CreateOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		return nil
	}
	if _, err := r.Update(context.Background(), o, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	return before
}

// with replaces an object for a while: it returns what puts it back.
func (w *world) with(k kind, text string) (back func()) {
	w.t.Helper()
	o := parse(w.t, text)
	before := w.put(k, o)
	return func() {
		if before == nil {
			w.must(w.client.Resource(k.GroupVersionResource).Namespace(o.GetNamespace()).Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}))
			return
		}
		w.put(k, before)
	}
}

// without deletes an object for a while.
func (w *world) without(k kind, namespace, name string) (back func()) {
	w.t.Helper()
	r := w.client.Resource(k.GroupVersionResource).Namespace(namespace)
	o, err := r.Get(context.Background(), name, metav1.GetOptions{})
	w.must(err)
	w.must(r.Delete(context.Background(), name, metav1.DeleteOptions{}))
	return func() { w.put(k, o) }
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) check() *checkup.Report {
	return checkup.Run(w.t.Context(), New(w.cfg).All(), time.Minute)
}

func text(r *checkup.Report) string { return strings.Join(r.Lines(0), "\n") }

func found(r *checkup.Report, name string, level checkup.Level, part string) bool {
	for _, f := range r.Findings {
		if f.Check == name && f.Level == level && strings.Contains(f.Text, part) && f.Fix != "" {
			return true
		}
	}
	return false
}

// broken is a way to be broken: what does it, which returns what mends it, and what is found.
type broken struct {
	name   string
	breaks func() (mends func())
	check  string
	level  checkup.Level
	text   string
}

// each holds that a healthy installation, broken in each way, is found so with a fix, and is found no more once mended.
func (w *world) each(t *testing.T, ways ...broken) {
	t.Helper()
	if r := w.check(); r.Result != checkup.OK || r.Skipped > 0 {
		t.Fatalf("a healthy installation:\n%s", text(r))
	}
	for _, tt := range ways {
		t.Run(tt.name, func(t *testing.T) {
			mends := tt.breaks()
			r := w.check()
			if !found(r, tt.check, tt.level, tt.text) {
				t.Errorf("want %s of %s with %q and a fix:\n%s", tt.level, tt.check, tt.text, text(r))
			}
			mends()
			if r := w.check(); r.Result != checkup.OK {
				t.Errorf("mended, and still:\n%s", text(r))
			}
		})
	}
}

// replaced is a way to be broken: an object of a text in which a part is another one.
func (w *world) replaced(k kind, base, part, by string) func() func() {
	return func() func() { return w.with(k, strings.Replace(base, part, by, 1)) }
}

func TestEachBreakIsFoundWithAFixAndGoesWhenMended(t *testing.T) {
	w := newWorld(t)
	ca, _ := certificates(t, now.Add(-time.Hour), now.Add(time.Hour), "x")
	controller, aggregators := workload("Deployment", "weir-controller"), workload("StatefulSet", "weir-aggregator")
	lease := `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: weir-controller, namespace: weir-system}, spec: {holderIdentity: "weir-controller-a", leaseDurationSeconds: 15, renewTime: "2026-11-30T11:50:00.000000Z"}}`
	w.each(t, []broken{
		{"no definition", func() func() { return w.without(definitions(), "", definitionName) }, "kubernetes.definition", checkup.Failed, "is not defined"},
		{"a definition of another version", func() func() { return w.edit(definitions(), "", definitionName, `"maxItems":8`, `"maxItems":9`) }, "kubernetes.definition", checkup.Warning, "another version of weir"},
		{"a version not served", func() func() { return w.edit(definitions(), "", definitionName, `"served":true`, `"served":false`) }, "kubernetes.definition", checkup.Failed, "does not serve"},
		{"a definition not established", func() func() {
			return w.edit(definitions(), "", definitionName, `"status":"True"`, `"status":"False"`)
		}, "kubernetes.definition", checkup.Failed, "not Established"},
		{"no controller", func() func() { return w.without(deployments(), "weir-system", controllerName) }, "kubernetes.controller", checkup.Failed, "no Deployment weir-controller"},
		{"no ready controller", w.replaced(deployments(), controller, "readyReplicas: 2", "readyReplicas: 0"), "kubernetes.controller", checkup.Failed, "none of 2 replicas is ready"},
		{"one controller of two", w.replaced(deployments(), controller, "readyReplicas: 2", "readyReplicas: 1"), "kubernetes.controller", checkup.Warning, "1 of 2 replicas"},
		{"a lease that ran out", func() func() { return w.with(leases(), lease) }, "kubernetes.controller", checkup.Failed, "weir-controller-a led until 10m0s ago"},
		{"a lease given up", w.replaced(leases(), lease, `"weir-controller-a"`, `""`), "kubernetes.controller", checkup.Failed, "no controller leads"},
		{"no lease", func() func() { return w.without(leases(), "weir-system", controllerName) }, "kubernetes.controller", checkup.Failed, "no controller leads"},
		{"scaled to nothing", w.replaced(statefulSets(), aggregators, "replicas: 2", "replicas: 0"), "kubernetes.aggregators", checkup.Failed, "no replicas"},
		{"no aggregators", func() func() { return w.without(statefulSets(), "weir-system", aggregatorName) }, "kubernetes.aggregators", checkup.Failed, "no StatefulSet"},
		{"programs of two versions", w.replaced(statefulSets(), aggregators, ":1.2.3", ":1.2.2"), "kubernetes.versions", checkup.Warning, "the controller is of version 1.2.3, the aggregators of 1.2.2"},
		{"no webhook", func() func() { return w.without(webhooks(), "", injectorName) }, "kubernetes.webhook", checkup.Failed, "pods get no sidecar in shop"},
		{"another authority", func() func() { return w.with(webhooks(), webhook(ca)) }, "kubernetes.webhook", checkup.Failed, "kube-apiserver refuses the certificate of weir-webhook.weir-system.svc"},
		{"no authority", func() func() { return w.with(webhooks(), webhook(nil)) }, "kubernetes.webhook", checkup.Failed, "has no authority"},
		{"a webhook that stops pods", func() func() { return w.edit(webhooks(), "", injectorName, "Ignore", "Fail") }, "kubernetes.webhook", checkup.Warning, "stops all pods"},
		{"a label of another value", func() func() { return w.with(namespaces(), namespace("carts", `"true"`)) }, "kubernetes.injection", checkup.Warning, "has a value that asks for nothing, in carts (true)"},
		{"a label where nothing is injected", func() func() { return w.with(namespaces(), namespace("kube-system", "enabled")) }, "kubernetes.injection", checkup.Warning, "kube-system asks for sidecars, and the injector leaves it out"},
		{"a pod that asks by itself", w.replaced(pods(), pod("cart", "{weirproxy.dev/inject: enabled}", "[]"), "namespace: shop", "namespace: other"), "kubernetes.injection", checkup.Warning, "namespace other: 1 pod has no sidecar, so nothing of theirs is counted: cart"},
		{"a pod that asks by itself has no key", w.replaced(pods(), pod("cart", "{weirproxy.dev/inject: enabled}", "[{name: weir-sidecar, image: x}]"), "namespace: shop", "namespace: other"), "kubernetes.identity", checkup.Failed, "no copy of Secret weir-identity in other"},
		{"a pod's label of another value", func() func() { return w.with(pods(), pod("orders-b", `{weirproxy.dev/inject: "yes"}`, "[]")) }, "kubernetes.injection", checkup.Warning, "namespace shop: 1 pod has a label weirproxy.dev/inject of another value, and no sidecar for it: orders-b (yes)"},
		{"a certificate that is none", func() func() {
			return w.with(secrets(), `{apiVersion: v1, kind: Secret, metadata: {name: weir-webhook-tls, namespace: weir-system}, data: {tls.crt: ""}}`)
		}, "kubernetes.webhook", checkup.Failed, "there is no certificate in it"},
		{"no endpoint", func() func() { return w.edit(endpointSlices(), "weir-system", "weir-webhook-x", "true", "false") }, "kubernetes.webhook", checkup.Failed, "no ready endpoint"},
		{"no namespace asks", func() func() {
			return w.with(namespaces(), namespace("shop", ""))
		}, "kubernetes.injection", checkup.Warning, "no namespace asks"},
		{"a pod without a sidecar", func() func() { return w.with(pods(), pod("orders-b", "{}", "[]")) }, "kubernetes.injection", checkup.Warning, "1 pod has no sidecar, so nothing of theirs is counted: orders-b"},
		{"a sidecar that does not run", w.replaced(pods(), pod("orders-b", "{}", "[{name: weir-sidecar, image: x}]"), "phase: Running",
			`phase: Pending, initContainerStatuses: [{name: weir-sidecar, state: {waiting: {reason: CreateContainerConfigError, message: 'secret "weir-identity" not found'}}}]`),
			"kubernetes.injection", checkup.Warning, `orders-b: CreateContainerConfigError secret "weir-identity" not found`},
		{"no identity key", func() func() { return w.without(secrets(), "weir-system", "weir-identity") }, "kubernetes.identity", checkup.Failed, "no Secret weir-identity"},
		{"no copy", func() func() { return w.without(secrets(), "shop", "weir-identity") }, "kubernetes.identity", checkup.Failed, "no copy of Secret weir-identity in shop"},
		{"a copy of another key", func() func() { return w.with(secrets(), secret("shop", 1)) }, "kubernetes.identity", checkup.Failed, "another key than the installation's in the copy of Secret weir-identity in shop"},
	}...)
}

// Namespaces that another installation serves, or none, are no failure of this one; its own still are.
func TestNamespacesThatAreNotWatchedAreNoFailure(t *testing.T) {
	w := newWorld(t)
	ca, cert := certificates(t, now.Add(-time.Hour), now.Add(60*24*time.Hour), "weir-webhook.weir-system.svc")
	w.certificate(cert)
	w.with(webhooks(), webhook(ca, "shop"))
	w.with(namespaces(), namespace("carts", "enabled"))
	w.with(namespaces(), namespace("odd", `"yes"`))
	w.with(pods(), strings.Replace(pod("cart", "{}", "[]"), "namespace: shop", "namespace: carts", 1))
	r := w.check()
	if r.Result != checkup.OK || !found(r, "kubernetes.injection", checkup.Skipped, "not watched by this installation, and asking for sidecars: carts") || r.Denied > 0 {
		t.Errorf("%s", text(r))
	}
	if !strings.Contains(text(r), "1 pod in 1 namespace with a running sidecar, none without") {
		t.Errorf("the watched ones are not said to be in order:\n%s", text(r))
	}
	back := w.without(secrets(), "shop", "weir-identity")
	if r := w.check(); !found(r, "kubernetes.identity", checkup.Failed, "no copy of Secret weir-identity in shop") {
		t.Errorf("%s", text(r))
	}
	back()
	w.client.PrependReactor("get", "mutatingwebhookconfigurations", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
	})
	if r := w.check(); !found(r, "kubernetes.injection", checkup.Warning, "namespace carts: 1 pod has no sidecar") {
		t.Errorf("without the right to the injector's configuration all are taken for watched:\n%s", text(r))
	}
}

// Of many namespaces all are looked at, pods in one list; what was found before an error or the end of the time is told.
func TestManyNamespacesAreLookedAtTogether(t *testing.T) {
	w := newWorld(t)
	const many = 700
	for i := range many {
		name := fmt.Sprintf("team-%03d", i)
		w.with(namespaces(), namespace(name, "enabled"))
		if i > 0 {
			w.with(secrets(), secret(name, 0))
		}
	}
	w.client.ClearActions()
	r := w.check()
	if !found(r, "kubernetes.identity", checkup.Failed, "no copy of Secret weir-identity in team-000: ") {
		t.Errorf("%s", text(r))
	}
	lists := 0
	for _, a := range w.client.Actions() {
		if a.GetVerb() == "list" && (a.GetResource() == pods().GroupVersionResource && a.GetNamespace() == "" || a.GetResource() == namespaces().GroupVersionResource) {
			lists++
		}
	}
	if lists != 2 {
		t.Errorf("%d lists of pods and namespaces, want one of each", lists)
	}
	var asked atomic.Int32
	w.client.PrependReactor("get", "secrets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetNamespace() != "weir-system" && asked.Add(1) > 300 {
			return true, nil, context.DeadlineExceeded
		}
		return false, nil, nil
	})
	if r = w.check(); !found(r, "kubernetes.identity", checkup.Failed, "no copy of Secret weir-identity in shop") && !found(r, "kubernetes.identity", checkup.Failed, "no copy of Secret weir-identity in team-000") ||
		!found(r, "kubernetes.identity", checkup.Failed, "copies are not looked at: context deadline exceeded") {
		t.Errorf("what was found is dropped:\n%s", text(r))
	}
	if n := asked.Load(); n > 300+2*askers {
		t.Errorf("it asked %d times, on and on after the first error", n)
	}
}

// A list that breaks off keeps what came before, and says that it is not all.
func TestAListThatBreaksOffKeepsItsFindings(t *testing.T) {
	w := newWorld(t)
	w.with(pods(), pod("orders-b", "{}", "[]"))
	pages := 0
	w.client.PrependReactor("list", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetNamespace() != "" {
			return false, nil, nil
		}
		if pages++; pages > 1 {
			return true, nil, apierrors.NewTimeoutError("too slow", 1)
		}
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "PodList", "metadata": map[string]any{"continue": "more"}}}
		list.Items = append(list.Items, *parse(t, pod("orders-b", "{}", "[]")))
		return true, list, nil
	})
	r := w.check()
	if !found(r, "kubernetes.injection", checkup.Warning, "1 pod has no sidecar, so nothing of theirs is counted: orders-b") || !found(r, "kubernetes.injection", checkup.Failed, "list pods: after the first 1: ") {
		t.Errorf("%s", text(r))
	}
}

// Istio of a revision has its configuration in a ConfigMap of its own.
func TestIstioOfARevisionIsFound(t *testing.T) {
	w := newWorld(t)
	istiod := func(revision string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: istiod-` + revision + `, namespace: istio-system, labels: {app: istiod, istio.io/rev: "` + revision + `"}}, spec: {containers: [{name: discovery, image: x}]}}`
	}
	mesh := func(revision, providers string) string {
		return `{apiVersion: v1, kind: ConfigMap, metadata: {name: istio-` + revision + `, namespace: istio-system}, data: {mesh: "extensionProviders: [` + providers + `]"}}`
	}
	const good = "{name: weir-shop, envoyExtAuthzGrpc: {service: shop/check.weir.internal, port: 9191, timeout: 0.150s}}"
	w.without(configMaps(), "istio-system", "istio")
	if r := w.check(); !strings.Contains(text(r), "Istio is not installed in namespace istio-system") {
		t.Fatalf("the test proves nothing:\n%s", text(r))
	}
	w.with(pods(), istiod("1-24"))
	w.with(configMaps(), mesh("1-24", ""))
	if r := w.check(); !found(r, "mesh.istio", checkup.Failed, `names the provider "weir-shop", which the mesh's configuration does not have`) {
		t.Errorf("a revision without the provider:\n%s", text(r))
	}
	w.with(configMaps(), mesh("1-24", good))
	if r := w.check(); r.Result != checkup.OK || strings.Contains(text(r), "not installed in namespace") {
		t.Errorf("a revision with it:\n%s", text(r))
	}
	w.with(pods(), istiod("1-25"))
	w.with(configMaps(), mesh("1-25", ""))
	if r := w.check(); !found(r, "mesh.istio", checkup.Warning, "the ConfigMap istio-1-25 does not have") {
		t.Errorf("one of two revisions:\n%s", text(r))
	}
	w.client.PrependReactor("get", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
	})
	if r := w.check(); !found(r, "mesh.istio", checkup.Skipped, "ConfigMap istio-1-25") || r.Denied == 0 {
		t.Errorf("no right to a revision's:\n%s", text(r))
	}
}

// What to do is a command that works as it stands: with the namespace, and with every step of an immutable Secret.
func TestFixesAreWholeCommands(t *testing.T) {
	w := newWorld(t)
	w.cfg.Namespace, w.cfg.Fingerprint = "quota", func(context.Context) (uint32, bool) { return 1, true }
	w.with(secrets(), secret("quota", 0))
	w.with(deployments(), strings.Replace(workload("Deployment", "weir-controller"), "weir-system", "quota", 1))
	w.without(definitions(), "", definitionName)
	all := text(w.check())
	for _, want := range []string{
		"kubectl -n quota delete secret weir-identity, then kubectl -n quota create secret generic weir-identity --from-file=identity.key=FILE",
		"kubectl -n quota logs -l app.kubernetes.io/component=controller --prefix",
		"helm upgrade --install weir-crds charts/weir-crds --namespace weir-system",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
}

// A context is looked for where kubectl does; without a file nothing is read unless one is named.
func TestContextWithoutAFileIsLookedForWhereKubectlDoes(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Connect("", "prod"); err == nil || !strings.Contains(err.Error(), "prod") {
		t.Errorf("a context that is nowhere: %v", err)
	}
	file := filepath.Join(home, "config")
	const config = `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], contexts: [{name: prod, context: {cluster: c, user: u}}], users: [{name: u, user: {token: t}}]}`
	w := &world{t: t}
	w.must(os.WriteFile(file, []byte(config), 0o600))
	t.Setenv("KUBECONFIG", file)
	if _, err := Connect("", "prod"); err != nil {
		t.Error(err)
	}
	if _, err := Connect("", "other"); err == nil || !strings.Contains(err.Error(), "other") {
		t.Errorf("another context: %v", err)
	}
}

// A provider of the mesh that is not there or not known denies every request.
func TestCase24BrokenProvidersOfTheMeshAreFound(t *testing.T) {
	w := newWorld(t)
	mesh := func(providers string) func() func() {
		return func() func() {
			return w.with(configMaps(), `{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: istio-system}, data: {mesh: "extensionProviders: [`+providers+`]"}}`)
		}
	}
	w.each(t, []broken{
		{"a provider that is not declared", mesh(""), "mesh.istio", checkup.Failed, `shop/weir-orders names the provider "weir-shop", which the mesh's configuration does not have`},
		{"a provider on loopback", mesh("{name: weir-shop, envoyExtAuthzGrpc: {service: 127.0.0.1, port: 9191, timeout: 1s}}"), "mesh.istio", checkup.Failed, "at 127.0.0.1, which the mesh does not know"},
		{"a provider at another port", mesh("{name: weir-shop, envoyExtAuthzGrpc: {service: shop/check.weir.internal, port: 9999, timeout: 1s}}"), "mesh.istio", checkup.Failed, "which no ServiceEntry has"},
		{"a provider of another namespace", mesh("{name: weir-shop, envoyExtAuthzGrpc: {service: other/check.weir.internal, port: 9191, timeout: 1s}}"), "mesh.istio", checkup.Failed, "which no ServiceEntry has"},
		{"a provider without a time-out", mesh("{name: weir-shop, envoyExtAuthzGrpc: {service: shop/check.weir.internal, port: 9191}}"), "mesh.istio", checkup.Warning, "no time-out"},
		{"a mesh configuration that is none", mesh("{"), "mesh.istio", checkup.Failed, "mesh"},
		{"no Backend", func() func() { return w.without(backends(), "shop", "weir") }, "mesh.envoy-gateway", checkup.Failed, "asks Backend shop/weir, which is not there"},
		{"a Backend not accepted", func() func() { return w.edit(backends(), "shop", "weir", "True", "False") }, "mesh.envoy-gateway", checkup.Failed, "which is not accepted"},
		{"a SecurityPolicy not accepted", func() func() {
			return w.edit(securityPolicies(), "shop", "weir-orders", `"status":"True"`, `"status":"False"`)
		}, "mesh.envoy-gateway", checkup.Failed, "SecurityPolicy shop/weir-orders is not accepted"},
		{"a filter before authentication", func() func() { return w.edit(envoyFilters(), "shop", "weir-orders", "INSERT_BEFORE", "INSERT_FIRST") }, "mesh.istio", checkup.Warning, "EnvoyFilter shop/weir-orders puts weir's check elsewhere than just before the router"},
	}...)
}

// What a status says is not taken for enforcement unless it speaks of every pod and of this generation.
func TestCase25PoliciesNotInForceEverywhereAreFound(t *testing.T) {
	w := newWorld(t)
	w.each(t, []broken{
		{"an invalid policy", func() func() { return w.with(quotaPolicies(), policy("False", "Programmed", "True", 2)) }, "kubernetes.policies", checkup.Failed, "shop/orders is not accepted: Invalid: spec.limits[0]: no"},
		{"a policy in force in part", func() func() { return w.with(quotaPolicies(), policy("True", "PartiallyProgrammed", "False", 2)) }, "kubernetes.policies", checkup.Failed, "PartiallyProgrammed: m (1 of 2 pods; lagging: orders-b)"},
		{"a policy not looked at", func() func() { return w.with(quotaPolicies(), policy("True", "Programmed", "True", 1)) }, "kubernetes.policies", checkup.Failed, "generation 2 is not looked at"},
	}...)
}

// edit replaces text in an object's JSON for a while.
func (w *world) edit(k kind, namespace, name, part, by string) (back func()) {
	w.t.Helper()
	o, err := w.client.Resource(k.GroupVersionResource).Namespace(namespace).Get(context.Background(), name, metav1.GetOptions{})
	w.must(err)
	data, err := o.MarshalJSON()
	w.must(err)
	changed := strings.Replace(string(data), part, by, 1)
	if changed == string(data) {
		w.t.Fatalf("%s %s has no %q:\n%s", k.Resource, name, part, data)
	}
	return w.with(k, changed)
}

func TestCertificateThatEndsSoon(t *testing.T) {
	ca, cert := certificates(t, now.Add(-time.Hour), now.Add(48*time.Hour), "a.b.svc")
	for name, tt := range map[string]struct {
		at   time.Time
		want checkup.Level
	}{
		"two days before": {now, checkup.Warning}, "afterwards": {now.Add(49 * time.Hour), checkup.Failed}, "before it begins": {now.Add(-2 * time.Hour), checkup.Failed},
	} {
		if f := judgeCertificate("x", ca, serving{"tls", cert, "a.b.svc"}, tt.at); len(f) != 1 || f[0].Level != tt.want || f[0].Fix == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := judgeCertificate("x", ca, serving{"tls", cert, "c.b.svc"}, now); len(f) != 1 || f[0].Level != checkup.Failed {
		t.Errorf("another host: %+v", f)
	}
}

func TestVersionsOfImages(t *testing.T) {
	for image, want := range map[string]string{
		"example.com:5000/weir:1.2": "1.2", "weir:v1@sha256:00": "v1", "example.com:5000/weir": "", "weir@sha256:00": "", "": "",
	} {
		if got := imageTag(image); got != want {
			t.Errorf("%q: %q, want %q", image, got, want)
		}
	}
	for _, tt := range []struct {
		controller, aggregator, own string
		want                        checkup.Level
	}{
		{"1.2.3", "1.2.3", "v1.2.3", checkup.OK}, {"v1", "v1", "", checkup.OK}, {"v1", "v1", "v2", checkup.Warning}, {"v1", "v2", "v1", checkup.Warning}, {"", "v1", "v1", checkup.Skipped},
	} {
		if got := judgeVersions(tt.controller, tt.aggregator, tt.own); len(got) != 1 || got[0].Level != tt.want {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

// The key of Kafka's installation and that of the Secret are one.
func TestIdentityOfAnotherInstallation(t *testing.T) {
	w := newWorld(t)
	w.cfg.Fingerprint = func(context.Context) (uint32, bool) { return 0xdeadbeef, true }
	if r := w.check(); !found(r, "kubernetes.identity", checkup.Failed, "the installation in Kafka deadbeef") {
		t.Error(text(r))
	}
}

// A user without any right gets no failure, and is told what it may not read. No secret is printed.
func TestWithoutRightsAllIsSkipped(t *testing.T) {
	w := newWorld(t)
	w.client.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
	})
	r := w.check()
	if r.Result != checkup.OK || r.OK != 1 || r.Denied != r.Skipped || r.Err(true) == nil || !found(r, "kubernetes.definition", checkup.Skipped, "this user may not get customresourcedefinitions.apiextensions.k8s.io") ||
		!found(r, "kubernetes.controller", checkup.Skipped, "may not get deployments.apps in namespace weir-system") {
		t.Error(text(r))
	}
}

func TestServerThatIsAwayFailsOnce(t *testing.T) {
	w := newWorld(t)
	w.client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewUnauthorized("who are you?")
	})
	r := w.check()
	if r.Failed != 1 || !found(r, "kubernetes.reachable", checkup.Failed, "does not know this user") || r.Skipped != len(New(w.cfg).All())-1 {
		t.Error(text(r))
	}
}

func TestNoCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := Connect("", ""); err != ErrNone { //nolint:errorlint // it is that one
		t.Errorf("err %v", err)
	}
	if _, err := Connect(filepath.Join(t.TempDir(), "none"), ""); err == nil {
		t.Error("a kubeconfig that is not there")
	}
	r := checkup.Run(t.Context(), New(Config{}).All(), time.Minute)
	if r.Result != checkup.OK || r.Skipped != 1 {
		t.Error(text(r))
	}
}

// What weir check says that it reads (docs/check.md, and so the chart's rights) is what it reads.
func TestDocumentedRightsAreThoseThatAreUsed(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.client.ClearActions() // those by which it was made
	w.check()
	for _, a := range w.client.Actions() {
		gvr := a.GetResource()
		group := gvr.Group
		if group == "" {
			group = "core"
		}
		if verb := a.GetVerb(); verb != "get" && verb != "list" {
			t.Errorf("it may %s %v", verb, gvr)
		}
		if !documented(string(doc), group, gvr.Resource, a.GetVerb()) {
			t.Errorf("docs/check.md has no right to %s %s of group %s", a.GetVerb(), gvr.Resource, group)
		}
	}
}

func documented(doc, group, resource, verb string) bool {
	for line := range strings.Lines(doc) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || strings.TrimSpace(cells[1]) != group || !strings.Contains(cells[3], verb) {
			continue
		}
		for _, r := range strings.Split(cells[2], ",") {
			if strings.TrimSpace(r) == resource {
				return true
			}
		}
	}
	return false
}
