package charts

import (
	"os"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/test/k8s/cluster"
)

// right is one thing that an account may do or not.
type right = authorizationv1.ResourceAttributes

// rights is that the controller's account has each right that its code asks for, and some that it must not have it has not.
func rights(t *testing.T, c *cluster.Cluster) {
	asked := 0
	for _, role := range roles(t) {
		for _, rule := range role.Rules {
			for _, r := range each(rule) {
				if role.Kind == "Role" {
					r.Namespace = namespace
				}
				asked++
				if r.Name != "weir-kafka" && !can(t, c, "weir-controller", r) { // the minimal values name no Secret for Kafka
					t.Errorf("%s: may not %s %s %s", role.Kind, r.Verb, r.Resource, r.Name)
				}
			}
		}
	}
	if asked < 20 {
		t.Errorf("only %d rights asked for", asked)
	}
	for _, r := range []right{
		{Verb: "get", Resource: "secrets", Namespace: "shop"}, {Verb: "list", Resource: "secrets", Namespace: namespace},
		{Verb: "get", Resource: "secrets", Namespace: namespace, Name: "weir-kafka"},
		{Verb: "delete", Resource: "secrets", Namespace: namespace, Name: "weir-webhook-tls"},
		{Verb: "create", Resource: "pods", Namespace: "shop"}, {Verb: "update", Resource: "pods", Namespace: "shop"},
		{Verb: "update", Group: "weirproxy.dev", Resource: "quotapolicies", Namespace: "shop"},
		{Verb: "patch", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Name: "istio-sidecar-injector"},
	} {
		if can(t, c, "weir-controller", r) {
			t.Errorf("may %+v", r)
		}
	}
}

// watchedRights is that the controller's rights end with the namespaces that it watches.
func watchedRights(t *testing.T, c *cluster.Cluster) {
	c.Helm(t, "install", "weir", chart, "--namespace", namespace, "--values", values("watched"))
	for _, tt := range []struct {
		right right
		may   bool
	}{
		{right{Verb: "list", Resource: "pods", Namespace: "shop"}, true},
		{right{Verb: "watch", Group: "weirproxy.dev", Resource: "quotapolicies", Namespace: "billing"}, true},
		{right{Verb: "get", Resource: "secrets", Namespace: namespace, Name: "weir-identity"}, true},
		{right{Verb: "list", Resource: "namespaces"}, true},
		{right{Verb: "list", Resource: "pods", Namespace: "default"}, false},
		{right{Verb: "create", Resource: "secrets", Namespace: "default"}, false},
		{right{Verb: "watch", Group: "weirproxy.dev", Resource: "quotapolicies"}, false},
	} {
		if may := can(t, c, "weir-controller", tt.right); may != tt.may {
			t.Errorf("%+v: %v, want %v", tt.right, may, tt.may)
		}
	}
	c.Helm(t, "uninstall", "weir", "--namespace", namespace)
}

// roles are those that are generated from the controller's code.
func roles(t *testing.T) []rbacv1.ClusterRole {
	t.Helper()
	text, err := os.ReadFile(chart + "/files/controller-rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []rbacv1.ClusterRole
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		out = append(out, role)
	}
	return out
}

// each are the rights that a rule gives, one by one.
func each(rule rbacv1.PolicyRule) []right {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var out []right
	for _, resource := range rule.Resources {
		for _, verb := range rule.Verbs {
			for _, name := range names {
				resource, sub, _ := strings.Cut(resource, "/")
				out = append(out, right{Group: rule.APIGroups[0], Resource: resource, Subresource: sub, Verb: verb, Name: name})
			}
		}
	}
	return out
}

// can asks kube-apiserver whether an account of the release has a right.
func can(t *testing.T, c *cluster.Cluster, account string, r right) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + namespace + ":" + account, ResourceAttributes: &r,
	}}
	if err := c.Client.Create(t.Context(), review); err != nil {
		t.Error(err)
	}
	return review.Status.Allowed
}

// check is helm test: the pod that weir check runs in may read what that looks at (docs/check.md). Afterwards nothing of it stays,
// but the pod where it failed, which tells why.
func check(t *testing.T, c *cluster.Cluster) {
	for _, tt := range []struct {
		ends corev1.PodPhase
		left string
	}{
		{corev1.PodFailed, "pod/weir-check"},
		{corev1.PodSucceeded, ""},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			playCheck(t, c, tt.ends)
		}()
		out, err := c.TryHelm(t, "test", "weir", "--namespace", namespace, "--timeout", "60s")
		<-done
		if (err == nil) != (tt.ends == corev1.PodSucceeded) || !strings.Contains(out, "weir-check") || !strings.Contains(out, string(tt.ends)) {
			t.Errorf("%v: %s", err, out)
		}
		var left []string
		for _, o := range (release{t, c}).objects() {
			if strings.HasSuffix(o, "/weir-check") {
				left = append(left, o)
			}
		}
		if got := strings.Join(left, " "); got != tt.left {
			t.Errorf("%s: what stays is %q, want %q", tt.ends, got, tt.left)
		}
	}
}

// playCheck waits for a new pod of the test, looks at its rights and has it end.
func playCheck(t *testing.T, c *cluster.Cluster, ends corev1.PodPhase) {
	pod := &corev1.Pod{}
	for c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "weir-check"}, pod) != nil || pod.Status.Phase != corev1.PodPending {
		if t.Context().Err() != nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	checkRights(t, c)
	pod.Status.Phase = ends
	if err := c.Client.Status().Update(t.Context(), pod); err != nil {
		t.Error(err)
	}
}

func checkRights(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	for _, r := range []right{
		{Verb: "get", Group: "apps", Resource: "deployments", Namespace: namespace, Name: "weir-controller"},
		{Verb: "get", Group: "apps", Resource: "statefulsets", Namespace: namespace, Name: "weir-aggregator"},
		{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: namespace, Name: "weir-controller"},
		{Verb: "list", Group: "discovery.k8s.io", Resource: "endpointslices", Namespace: namespace},
		{Verb: "get", Resource: "secrets", Namespace: namespace, Name: "weir-webhook-tls"},
		{Verb: "get", Resource: "secrets", Namespace: "shop", Name: "weir-identity"},
		{Verb: "get", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Name: "quotapolicies.weirproxy.dev"},
		{Verb: "get", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Name: "weir-injector"},
		{Verb: "list", Group: "weirproxy.dev", Resource: "quotapolicies"},
		{Verb: "list", Resource: "namespaces"}, {Verb: "list", Resource: "pods"},
		{Verb: "get", Resource: "configmaps", Namespace: "istio-system", Name: "istio"},
		{Verb: "list", Group: "networking.istio.io", Resource: "serviceentries"},
	} {
		if !can(t, c, "weir-check", r) {
			t.Errorf("weir check may not %+v", r)
		}
	}
	for _, r := range []right{
		{Verb: "patch", Group: "weirproxy.dev", Resource: "quotapolicies"}, {Verb: "list", Resource: "secrets", Namespace: namespace},
	} {
		if can(t, c, "weir-check", r) {
			t.Errorf("weir check may %+v", r)
		}
	}
}
