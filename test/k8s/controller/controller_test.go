package controller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/api/v1alpha1/kube"
	"github.com/weirproxy/weir/controller"
	"github.com/weirproxy/weir/test/parts"
)

const ordersYAML = `
apiVersion: v1
kind: Service
metadata: {name: orders, namespace: %[1]s}
spec: {selector: {app: orders}, ports: [{port: 80}]}
---
apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: %[1]s}
spec:
  targetRefs: [{group: "", kind: Service, name: orders}]
  limits: [{name: all, rates: [{limit: 10, window: 1s}]}]
`

const ordersKey = "kube/%s/orders"

// One site for all: its start takes seconds.
func TestController(t *testing.T) {
	s := newSite(t)
	run := func(name string, f func(*site)) {
		t.Run(name, func(t *testing.T) {
			sub := *s
			sub.t = t
			f(&sub)
		})
	}
	run("orphans on start", (*site).orphans)
	run("a policy's life", (*site).life)
	run("what is wrong is said", (*site).wrong)
	run("secrets", (*site).secrets)
	run("hand-over", (*site).handover)
	run("a lost lease", (*site).lost)
	run("metrics", (*site).metrics)
	run("some namespaces only", (*site).narrow)
	run("rights", (*site).rights)
}

// CASE 25: Programmed only once every pod says that it has the newest version in force; and not a write more
// than changes need.
func (s *site) life() {
	s.Namespace(s.t, "shop", nil)
	s.runningPod("shop", "a", map[string]string{"app": "orders"})
	s.runningPod("shop", "b", map[string]string{"app": "orders"})
	r := s.start(nil)
	s.Apply(s.t, fmt.Sprintf(ordersYAML, "shop"))
	s.becomes("shop/orders", kube.ConditionAccepted, kube.ReasonAccepted)
	first := s.published()[fmt.Sprintf(ordersKey, "shop")]
	if first == nil || first.Generation != 1 || first.Targets[0].Selector["app"] != "orders" {
		s.t.Fatalf("the topic has %+v", first)
	}
	const target = "shop/Service/orders"
	s.report("shop/a", 1, first, target)
	if p := s.becomes("shop/orders", kube.ConditionProgrammed, kube.ReasonPartiallyProgrammed); p.Status.Pods.Ratio != "1/2" || p.Status.Pods.Lagging[0] != "b" {
		s.t.Errorf("status %+v", p.Status.Pods)
	}
	s.report("shop/b", 2, first, target)
	p := s.becomes("shop/orders", kube.ConditionProgrammed, kube.ReasonProgrammed)
	s.quiet(p, func() { s.report("shop/b", 2, first, target) })

	s.Kubectl(s.t, "--namespace=shop", "patch", "service", "orders", "--type=merge", `--patch={"spec":{"selector":{"tier":"web"}}}`)
	s.eventually("the new selector is published", func() error {
		if got := s.published()[fmt.Sprintf(ordersKey, "shop")].Targets[0].Selector; got["tier"] != "web" {
			return fmt.Errorf("selector %v", got)
		}
		return nil
	})
	s.eventually("no pod is of the target", func() error {
		if got := s.policy("shop/orders").Status.Pods; got.Total != 0 {
			return fmt.Errorf("pods %+v", got)
		}
		return nil
	})
	s.Kubectl(s.t, "--namespace=shop", "label", "pod", "a", "tier=web")
	s.becomes("shop/orders", kube.ConditionProgrammed, kube.ReasonPending)
	second := s.published()[fmt.Sprintf(ordersKey, "shop")]
	s.report("shop/a", 1, second, target)
	s.becomes("shop/orders", kube.ConditionProgrammed, kube.ReasonProgrammed)
	s.events("shop", "orders", "Accepted", "Programmed")

	s.Kubectl(s.t, "--namespace=shop", "delete", "quotapolicy", "orders")
	s.gone(fmt.Sprintf(ordersKey, "shop"))
	if ready, reasons := r.Ready(); !ready || len(reasons) > 0 {
		s.t.Errorf("ready %v: %v", ready, reasons)
	}
	r.stop()
}

// quiet does what changes nothing and sees that nothing is written.
func (s *site) quiet(p *kube.QuotaPolicy, f func()) {
	s.t.Helper()
	f()
	// A pod of the target changes in what no status tells; and the policy is looked at, since another one is.
	s.Kubectl(s.t, "--namespace=shop", "label", "pod", "a", "other=label")
	other := strings.ReplaceAll(fmt.Sprintf(ordersYAML, "shop"), "kind: QuotaPolicy\nmetadata: {name: orders", "kind: QuotaPolicy\nmetadata: {name: second")
	s.Apply(s.t, other)
	s.becomes("shop/second", kube.ConditionAccepted, kube.ReasonAccepted)
	s.Kubectl(s.t, "--namespace=shop", "delete", "quotapolicy", "second")
	s.gone("kube/shop/second")
	if now := s.policy("shop/orders"); now.ResourceVersion != p.ResourceVersion {
		s.t.Errorf("it was written again though nothing changed:\n%+v\n%+v", p.Status, now.Status)
	}
}

func (s *site) gone(key string) {
	s.t.Helper()
	s.eventually(key+" leaves the topic", func() error {
		if p := s.published()[key]; p != nil {
			return fmt.Errorf("generation %d is there", p.Generation)
		}
		return nil
	})
}

// events wants events of these reasons about a policy.
func (s *site) events(namespace, name string, reasons ...string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("events %v", reasons), func() error {
		var list eventsv1.EventList
		if err := s.api.List(s.t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, e := range list.Items {
			if e.Regarding.Name == name && e.Regarding.Kind == "QuotaPolicy" {
				seen[e.Reason] = true
			}
		}
		for _, r := range reasons {
			if !seen[r] {
				return fmt.Errorf("there are %v", seen)
			}
		}
		return nil
	})
}

// A policy whose object went while no controller ran is taken out of the topic; other writers' stay.
func (s *site) orphans() {
	s.Namespace(s.t, "left", nil)
	r := s.start(nil)
	s.Apply(s.t, fmt.Sprintf(ordersYAML, "left"))
	s.becomes("left/orders", kube.ConditionAccepted, kube.ReasonAccepted)
	r.stop()
	s.Kubectl(s.t, "--namespace=left", "delete", "quotapolicy", "orders")
	if s.published()[fmt.Sprintf(ordersKey, "left")] == nil {
		s.t.Fatal("it left the topic although no controller runs")
	}
	r = s.start(nil)
	s.gone(fmt.Sprintf(ordersKey, "left"))
	r.stop()
}

func (s *site) wrong() {
	s.Namespace(s.t, "wrong", nil)
	r := s.start(nil)
	good := fmt.Sprintf(ordersYAML, "wrong")
	s.Apply(s.t, good)
	s.becomes("wrong/orders", kube.ConditionAccepted, kube.ReasonAccepted)
	// A template that does not parse is what the schema cannot refuse.
	s.Apply(s.t, strings.ReplaceAll(good, "{name: all,", `{name: all, when: {paths: [{type: Template, value: "/a/{b"}]},`))
	p := s.becomes("wrong/orders", kube.ConditionAccepted, kube.ReasonInvalid)
	if got := fmt.Sprint(p.Status.Conditions); !strings.Contains(got, "spec.limits[0].when.paths[0]") {
		s.t.Errorf("the field is not named in %s", got)
	}
	if kept := s.published()[fmt.Sprintf(ordersKey, "wrong")]; kept == nil || kept.Generation != 1 {
		s.t.Errorf("the topic has %+v, want the last good generation", kept)
	}
	s.Apply(s.t, good)
	s.becomes("wrong/orders", kube.ConditionAccepted, kube.ReasonAccepted)

	s.publishByHand("wrong/orders")
	s.becomes("wrong/orders", kube.ConditionAccepted, kube.ReasonConflicted)
	s.withdrawByHand("wrong/orders")
	s.becomes("wrong/orders", kube.ConditionAccepted, kube.ReasonAccepted)

	s.Kubectl(s.t, "--namespace=wrong", "delete", "service", "orders")
	s.becomes("wrong/orders", kube.ConditionAccepted, kube.ReasonTargetNotFound)
	s.Apply(s.t, good)
	s.becomes("wrong/orders", kube.ConditionAccepted, kube.ReasonAccepted)

	s.Apply(s.t, strings.ReplaceAll(good, `{group: "", kind: Service, name: orders}`, `{group: gateway.networking.k8s.io, kind: HTTPRoute, name: front}`))
	p = s.becomes("wrong/orders", kube.ConditionAccepted, kube.ReasonTargetNotFound)
	if got := fmt.Sprint(p.Status.Conditions); !strings.Contains(got, "HTTPRoute.gateway.networking.k8s.io") {
		s.t.Errorf("the kind is not named in %s", got)
	}
	s.Apply(s.t, routes)
	s.Kubectl(s.t, "wait", "--for=condition=Established", "crd/httproutes.gateway.networking.k8s.io")
	s.Apply(s.t, route)
	s.becomes("wrong/orders", kube.ConditionAccepted, kube.ReasonAccepted)
	s.Kubectl(s.t, "--namespace=wrong", "delete", "httproute", "front")
	s.becomes("wrong/orders", kube.ConditionAccepted, kube.ReasonTargetNotFound)
	s.Kubectl(s.t, "--namespace=wrong", "delete", "quotapolicy", "orders")
	s.gone(fmt.Sprintf(ordersKey, "wrong"))
	r.stop()
}

// routes is as much of the Gateway API as a target needs.
const routes = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: httproutes.gateway.networking.k8s.io
  annotations: {api-approved.kubernetes.io: "unapproved, for a test"}
spec:
  group: gateway.networking.k8s.io
  names: {kind: HTTPRoute, plural: httproutes, singular: httproute, listKind: HTTPRouteList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

const route = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: front, namespace: wrong}
`

func (s *site) secrets() {
	r := s.start(nil)
	s.Namespace(s.t, "labelled", map[string]string{"weirproxy.dev/inject": "enabled"})
	s.Namespace(s.t, "plain", nil)
	s.secret("labelled", "weir-identity", "identity.key", "one")
	s.secret("labelled", "weir-kafka", "password", "two")
	s.Kubectl(s.t, "--namespace="+own, "patch", "secret", "weir-kafka", "--type=merge", `--patch={"stringData":{"password":"three"}}`)
	s.secret("labelled", "weir-kafka", "password", "three")
	s.Kubectl(s.t, "--namespace=labelled", "delete", "secret", "weir-identity")
	s.secret("labelled", "weir-identity", "identity.key", "one")

	s.Kubectl(s.t, "--namespace=plain", "create", "secret", "generic", "weir-identity", "--from-literal=identity.key=theirs")
	s.runningPod("plain", "asks", map[string]string{"weirproxy.dev/inject": "enabled"})
	s.secret("plain", "weir-kafka", "password", "three")
	s.secret("plain", "weir-identity", "identity.key", "theirs")
	s.Kubectl(s.t, "label", "namespace", "plain", "weirproxy.dev/inject=disabled")
	s.secret("plain", "weir-kafka", "password", "")
	s.Kubectl(s.t, "label", "namespace", "plain", "weirproxy.dev/inject-")
	s.secret("plain", "weir-kafka", "password", "three")
	s.Kubectl(s.t, "--namespace=plain", "delete", "pod", "asks", "--force", "--grace-period=0")
	s.Kubectl(s.t, "label", "namespace", "labelled", "weirproxy.dev/inject-")
	s.secret("plain", "weir-kafka", "password", "")
	s.secret("labelled", "weir-kafka", "password", "")
	s.secret("labelled", "weir-identity", "identity.key", "")
	s.secret("plain", "weir-identity", "identity.key", "theirs")
	r.stop()
}

// secret waits until a Secret has a value; "": until there is none.
func (s *site) secret(namespace, name, key, want string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("Secret %s/%s is %q", namespace, name, want), func() error {
		var got corev1.Secret
		err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &got)
		switch {
		case apierrors.IsNotFound(err) && want == "":
			return nil
		case err != nil:
			return err
		case string(got.Data[key]) != want:
			return fmt.Errorf("it has %q", got.Data[key])
		}
		return nil
	})
}

// A second replica waits with warm caches, and writes once the first has given the lease back.
func (s *site) handover() {
	s.Namespace(s.t, "over", nil)
	first := s.start(nil)
	s.Apply(s.t, fmt.Sprintf(ordersYAML, "over"))
	s.becomes("over/orders", kube.ConditionAccepted, kube.ReasonAccepted)
	second := s.start(nil)
	s.eventually("the second replica is ready", func() error {
		if ready, reasons := second.Ready(); !ready {
			return errors.New(strings.Join(reasons, "; "))
		}
		return nil
	})
	if strings.Contains(second.lines.String(), "this replica writes") {
		s.t.Error("two replicas write")
	}
	version := s.published()[fmt.Sprintf(ordersKey, "over")].Version
	ended := time.Now()
	first.stop()
	s.Kubectl(s.t, "--namespace=over", "patch", "quotapolicy", "orders", "--type=merge",
		`--patch={"spec":{"limits":[{"name":"all","rates":[{"limit":20,"window":"1s"}]}]}}`)
	s.becomes("over/orders", kube.ConditionAccepted, kube.ReasonAccepted)
	s.t.Logf("the second replica's first write: %v after the first was told to end", time.Since(ended).Round(time.Millisecond))
	if p := s.published()[fmt.Sprintf(ordersKey, "over")]; p.Generation != 2 || p.Version != version+1 {
		s.t.Errorf("the topic has generation %d at %d, was at %d: a leader that takes over writes nothing else", p.Generation, p.Version, version)
	}
	second.stop()
}

// A leader whose lease another took stops writing, begins anew as a standby, and may lead again; what it serves
// goes on meanwhile.
func (s *site) lost() {
	s.Namespace(s.t, "lost", nil)
	r := s.start(nil)
	s.Apply(s.t, fmt.Sprintf(ordersYAML, "lost"))
	s.becomes("lost/orders", kube.ConditionAccepted, kube.ReasonAccepted)
	led := func() int { return strings.Count(r.lines.String(), "this replica writes") }
	if led() != 1 {
		s.t.Fatalf("it led %d times", led())
	}
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: own, Name: "weir-controller"}
	s.eventually("another takes the lease", func() error {
		if err := s.api.Get(s.t.Context(), key, &lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = new("another"), &metav1.MicroTime{Time: time.Now()}
		return s.api.Update(s.t.Context(), &lease)
	})
	s.eventually("it says so", func() error {
		if ready, reasons := r.Ready(); !ready || !strings.Contains(strings.Join(reasons, ";"), "leader election lost") {
			return fmt.Errorf("ready %v: %v", ready, reasons)
		}
		return nil
	})
	// Nobody tells the next session of what goes between the two.
	s.Kubectl(s.t, "--namespace=lost", "delete", "quotapolicy", "orders")
	if s.published()[fmt.Sprintf(ordersKey, "lost")] == nil {
		s.t.Error("it left the topic although nobody leads")
	}
	s.eventually("it leads again", func() error {
		if led() != 2 {
			return fmt.Errorf("it led %d times", led())
		}
		return nil
	})
	s.gone(fmt.Sprintf(ordersKey, "lost"))
	r.stop()
}

// Metrics are for those whom kube-apiserver lets read them.
func (s *site) metrics() {
	port, err := parts.FreePort()
	if err != nil {
		s.t.Fatal(err)
	}
	r := s.start(func(c *controller.Config) {
		c.Metrics = config.ControllerMetrics{Address: fmt.Sprintf("tcp://127.0.0.1:%d", port), Authorize: true}
	})
	s.Apply(s.t, scraper)
	collector := strings.TrimSpace(s.Kubectl(s.t, "--namespace=weir-system", "create", "token", "collector"))
	stranger := strings.TrimSpace(s.Kubectl(s.t, "--namespace=weir-system", "create", "token", "stranger"))
	collect := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, //nolint:gosec // it signs itself
	}}
	get := func(token string) (code int, body string, err error) {
		request, err := asking(s.t.Context(), fmt.Sprintf("https://127.0.0.1:%d/metrics", port), token)
		if err != nil {
			return 0, "", err
		}
		answer, err := collect.Do(request)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text), err
	}
	s.eventually("metrics are served", func() error {
		_, _, err := get("")
		return err
	})
	for who, want := range map[string]struct {
		token string
		code  int
	}{"nobody": {"", 401}, "a stranger": {stranger, 403}, "the collector": {collector, 200}} {
		code, body, err := get(want.token)
		if err != nil || code != want.code {
			s.t.Errorf("%s gets %d, %v; want %d", who, code, err, want.code)
		}
		for _, name := range []string{"weir_controller_waiting", "leader_election_master_status", "workqueue_depth", "go_goroutines"} {
			if code == 200 && !strings.Contains(body, name) {
				s.t.Errorf("%s is missing", name)
			}
		}
	}
	r.stop()
}

func asking(ctx context.Context, url, token string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err == nil && token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r, err
}

const scraper = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: collector, namespace: weir-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: stranger, namespace: weir-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: collector}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: collector}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: collector}
subjects: [{kind: ServiceAccount, name: collector, namespace: weir-system}]
`

// A controller that watches some namespaces needs no rights in others, and leaves nothing in force there.
func (s *site) narrow() {
	s.Namespace(s.t, "narrow", map[string]string{"weirproxy.dev/inject": "enabled"})
	s.Namespace(s.t, "outside", map[string]string{"weirproxy.dev/inject": "enabled"})
	r := s.start(nil)
	s.Apply(s.t, fmt.Sprintf(ordersYAML, "outside"))
	s.becomes("outside/orders", kube.ConditionAccepted, kube.ReasonAccepted)
	s.secret("outside", "weir-identity", "identity.key", "one")
	s.secret("outside", "weir-kafka", "password", "three")
	r.stop()
	s.Kubectl(s.t, "--namespace=outside", "delete", "secret", "--selector=weirproxy.dev/copy-of=weir-system") // as install.md says
	s.secret("outside", "weir-identity", "identity.key", "")

	s.Apply(s.t, narrowRights)
	r = s.start(func(c *controller.Config) {
		c.WatchNamespaces, c.Kubeconfig = []string{"narrow"}, s.KubeconfigFor(s.t, "narrow")
	})
	s.Apply(s.t, fmt.Sprintf(ordersYAML, "narrow"))
	s.becomes("narrow/orders", kube.ConditionAccepted, kube.ReasonAccepted)
	s.events("narrow", "orders", "Accepted")
	s.secret("narrow", "weir-identity", "identity.key", "one")
	s.gone(fmt.Sprintf(ordersKey, "outside"))
	s.secret("outside", "weir-identity", "identity.key", "")
	s.Kubectl(s.t, "--namespace=narrow", "delete", "quotapolicy", "orders")
	s.gone(fmt.Sprintf(ordersKey, "narrow"))
	r.stop()
}

// narrowRights are the controller's, in the namespaces that it watches and its own, as the chart binds them.
const narrowRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: narrow, namespace: narrow}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: weir-controller}
subjects: [{kind: User, name: narrow, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: narrow, namespace: weir-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: weir-controller}
subjects: [{kind: User, name: narrow, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: narrow}
rules: [{apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: narrow}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: narrow}
subjects: [{kind: User, name: narrow, apiGroup: rbac.authorization.k8s.io}]
`

// What the controller is not given, it cannot do: the rights are as narrow as they read.
func (s *site) rights() {
	c := s.restClient()
	s.Kubectl(s.t, "--namespace=shop", "create", "secret", "generic", "theirs", "--from-literal=a=b")
	var secret corev1.Secret
	var all corev1.SecretList
	for what, err := range map[string]error{
		"read another Secret":        c.Get(s.t.Context(), client.ObjectKey{Namespace: "shop", Name: "theirs"}, &secret),
		"list Secrets":               c.List(s.t.Context(), &all),
		"delete a pod":               c.Delete(s.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}),
		"delete another's Secret":    c.Delete(s.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "theirs"}}),
		"make a namespace":           c.Create(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "made"}}),
		"read configuration of pods": c.Get(s.t.Context(), client.ObjectKey{Namespace: "shop", Name: "kube-root-ca.crt"}, &corev1.ConfigMap{}),
	} {
		if !apierrors.IsForbidden(err) {
			s.t.Errorf("it may %s: %v", what, err)
		}
	}
}
