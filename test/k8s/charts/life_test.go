package charts

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weirproxy/weir/controller/certs"
	"github.com/weirproxy/weir/test/k8s/cluster"
)

// A release from its installation to what is left of it: the key by which counts are named and the policies outlive each
// change, what the controller wrote is not undone, and nothing else stays.
func life(t *testing.T, c *cluster.Cluster) {
	t.Setenv("HELM_MAX_HISTORY", "0") // the first revision is gone back to, again and again
	r := release{t, c}
	r.helm("install", "--values", values("minimal"))
	c.Apply(t, policy)
	key := r.key()
	if len(key) != 32 {
		t.Fatalf("the key has %d bytes", len(key))
	}
	job := r.job()
	first := r.announce(nil)
	// As somebody does whose key has leaked.
	c.Kubectl(t, "patch", "secret", "weir-webhook-tls", "--namespace", namespace, "--patch", `{"data": null}`)
	bundle := r.announce(first)

	refused, err := c.TryHelm(t, "upgrade", "weir", chart, "--namespace", namespace, "--reuse-values", "--set", "aggregator.replica=3")
	if err == nil || !strings.Contains(refused, "'replica' not allowed") {
		t.Errorf("an unknown value: %v\n%s", err, refused)
	}

	t.Run("upgrade", func(t *testing.T) {
		r := release{t, c}
		r.helm("upgrade", "--values", values("minimal"), "--set", "aggregator.replicas=3", "--set", "kafka.brokers={other:9092}")
		if n := r.replicas(); n != 3 {
			t.Errorf("%d replicas", n)
		}
		if r.job() == job {
			t.Error("the topics of other brokers are not looked after")
		}
		r.kept(key, bundle)
	})
	t.Run("rollback", func(t *testing.T) {
		r := release{t, c}
		c.Helm(t, "rollback", "weir", "1", "--namespace", namespace)
		if n := r.replicas(); n != 2 {
			t.Errorf("%d replicas", n)
		}
		if r.job() != job {
			t.Error("the first topics' job is not back")
		}
		r.kept(key, bundle)
	})
	t.Run("scaled", func(t *testing.T) { scaled(t, c) })
	t.Run("own certificate", func(t *testing.T) { ownCertificate(t, c) })
	t.Run("rights", func(t *testing.T) { rights(t, c) })
	t.Run("secrets", func(t *testing.T) { guarded(t, c) })
	t.Run("label", func(t *testing.T) { mislabelled(t, c) })
	t.Run("test", func(t *testing.T) { check(t, c) })
	t.Run("uninstall", func(t *testing.T) {
		r := release{t, c}
		c.Helm(t, "uninstall", "weir", "--namespace", namespace)
		if left := r.objects(); !slices.Equal(left, []string{"secret/weir-identity"}) {
			t.Errorf("left: %v", left)
		}
		c.Kubectl(t, "get", "quotapolicies", "--namespace", "shop", "orders")
	})
	t.Run("install again", func(t *testing.T) {
		r := release{t, c}
		r.helm("install", "--values", values("minimal"))
		if again := r.key(); again != key {
			t.Error("the key is another one, so all counts begin anew")
		}
		c.Helm(t, "uninstall", "weir", "--namespace", namespace)
	})
	t.Run("install by another name", func(t *testing.T) {
		other := []string{"install", "other", chart, "--namespace", namespace, "--values", values("minimal")}
		if out, err := c.TryHelm(t, other...); err == nil || !strings.Contains(out, "weir-identity") {
			t.Errorf("the key is taken from a release of another name: %v\n%s", err, out)
		}
		c.Helm(t, append(other, "--set", "identity.existingSecret=weir-identity")...)
		c.Helm(t, "uninstall", "other", "--namespace", namespace)
		if again := (release{t, c}).key(); again != key {
			t.Error("the key is another one, so all counts begin anew")
		}
	})
	t.Run("watched", func(t *testing.T) { watchedRights(t, c) })
	t.Run("policies outlive their definition's chart", func(t *testing.T) {
		c.Helm(t, "uninstall", "weir-crds", "--namespace", namespace)
		c.Kubectl(t, "get", "quotapolicies", "--namespace", "shop", "orders")
	})
}

// scaled is that an autoscaler takes the number of aggregators over without a fall, and that no upgrade takes it back.
func scaled(t *testing.T, c *cluster.Cluster) {
	r := release{t, c}
	upgrade := func(want int32, level string) {
		t.Helper()
		r.helm("upgrade", "--values", values("minimal"), "--set", "aggregator.autoscaling.mode=HPA,aggregator.logLevel="+level)
		if n := r.replicas(); n != want {
			t.Errorf("%d replicas, want %d", n, want)
		}
	}
	back := []string{"rollback", "weir", "1", "--namespace", namespace}
	upgrade(2, "info")
	c.Kubectl(t, "scale", "statefulset", "weir-aggregator", "--namespace", namespace, "--replicas=5")
	upgrade(5, "warn")
	if out, err := c.TryHelm(t, back...); err == nil || !strings.Contains(out, ".spec.replicas") {
		t.Errorf("without the flag: %v\n%s", err, out)
	}
	c.Helm(t, append(back, "--force-conflicts")...)
	if n := r.replicas(); n != 2 {
		t.Errorf("%d replicas", n)
	}
	upgrade(2, "info")
	upgrade(2, "warn")
	c.Kubectl(t, "scale", "statefulset", "weir-aggregator", "--namespace", namespace, "--replicas=5") // as the autoscaler does
	upgrade(5, "info")
	upgrade(5, "warn")
	r.helm("upgrade", "--values", values("minimal"), "--force-conflicts") // by hand again
	if n := r.replicas(); n != 2 {
		t.Errorf("%d replicas", n)
	}
}

// ownCertificate is that an authority of one's own takes the place of the controller's, by the flag that docs/install.md names:
// without it Helm leaves to others what others wrote.
func ownCertificate(t *testing.T, c *cluster.Cluster) {
	own := []string{"upgrade", "weir", chart, "--namespace", namespace, "--values", values("everything")}
	if out, err := c.TryHelm(t, own...); err == nil || !strings.Contains(out, "clientConfig.caBundle") {
		t.Errorf("without the flag: %v\n%s", err, out)
	}
	c.Helm(t, append(own, "--force-conflicts")...)
	for name, authority := range (release{t, c}).bundles() {
		if !strings.Contains(authority, "\nbm9uZQ==\n") {
			t.Errorf("%s has the authority %q", name, authority)
		}
	}
	c.Helm(t, "rollback", "weir", "1", "--namespace", namespace)
}

const policy = `
apiVersion: weirproxy.dev/v1alpha1
kind: QuotaPolicy
metadata: {name: orders, namespace: shop}
spec:
  targetRefs: [{kind: Service, name: orders}]
  limits: [{name: all, rates: [{limit: 100, window: 1s}]}]
`

// release is the release weir, as a test looks at it.
type release struct {
	t *testing.T
	c *cluster.Cluster
}

func (r release) helm(verb string, args ...string) {
	r.t.Helper()
	r.c.Helm(r.t, append([]string{verb, "weir", chart, "--namespace", namespace}, args...)...)
}

func (r release) get(name string, o client.Object) {
	r.t.Helper()
	if err := r.c.Client.Get(r.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
		r.t.Fatal(err)
	}
}

func (r release) key() string {
	r.t.Helper()
	s := &corev1.Secret{}
	r.get("weir-identity", s)
	return string(s.Data["identity.key"])
}

func (r release) replicas() int32 {
	r.t.Helper()
	s := &appsv1.StatefulSet{}
	r.get("weir-aggregator", s)
	return *s.Spec.Replicas
}

// job is the name of the only job.
func (r release) job() string {
	r.t.Helper()
	var jobs batchv1.JobList
	if err := r.c.Client.List(r.t.Context(), &jobs, client.InNamespace(namespace)); err != nil || len(jobs.Items) != 1 {
		r.t.Fatalf("jobs %v, %v", jobs.Items, err)
	}
	return jobs.Items[0].Name
}

// bundles are the authorities by which kube-apiserver trusts the webhooks.
func (r release) bundles() map[string]string {
	r.t.Helper()
	o := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := r.c.Client.Get(r.t.Context(), client.ObjectKey{Name: "weir-injector"}, o); err != nil {
		r.t.Fatal(err)
	}
	out := map[string]string{}
	for _, w := range o.Webhooks {
		out[w.Name] = string(w.ClientConfig.CABundle)
	}
	return out
}

// announce has the controller's own code make the webhook's certificate and announce it, with the rights of the release, and
// returns once kube-apiserver trusts another authority than before.
func (r release) announce(before map[string]string) map[string]string {
	r.t.Helper()
	config := rest.CopyConfig(r.c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":weir-controller"}
	log.SetLogger(logr.Discard()) // else controller-runtime says that it has none
	live, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	made := certs.New(certs.Config{Mode: certs.SelfManaged, Namespace: namespace, Secret: "weir-webhook-tls", Service: "weir-webhook",
		Configuration: "weir-injector"}, live, prometheus.NewRegistry(), zap.NewNop())
	ctx, stop := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- made.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			r.t.Error(err)
		}
	}()
	for r.t.Context().Err() == nil {
		now := r.bundles()
		if announced(now, before) {
			return now
		}
		time.Sleep(50 * time.Millisecond)
	}
	_, reasons := made.Ready()
	r.t.Fatalf("nothing was announced: %v", reasons)
	return nil
}

// announced is whether every webhook has an authority, and another one than before.
func announced(now, before map[string]string) bool {
	for name, authority := range now {
		if authority == "" || authority == before[name] {
			return false
		}
	}
	return len(now) > 0
}

// kept is what no upgrade and no rollback may change.
func (r release) kept(key string, bundles map[string]string) {
	r.t.Helper()
	if r.key() != key {
		r.t.Error("the identity key is another one")
	}
	if got := r.bundles(); !maps.Equal(got, bundles) {
		r.t.Errorf("the webhooks' authority is gone: %v", got)
	}
	s := &corev1.Secret{}
	r.get("weir-webhook-tls", s)
	if len(s.Data) == 0 {
		r.t.Error("the webhook's certificate is gone")
	}
}

// objects are all of the release that are there, as kind/name, whatever their kind.
func (r release) objects() []string {
	r.t.Helper()
	kinds := strings.Fields(r.c.Kubectl(r.t, "api-resources", "--verbs=list,delete", "--output=name"))
	kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "endpoints" }) // kubectl warns of them
	out := r.c.Kubectl(r.t, "get", strings.Join(kinds, ","), "--all-namespaces", "--ignore-not-found", "--output=name",
		"--selector=app.kubernetes.io/name=weir")
	return slices.Compact(slices.Sorted(slices.Values(strings.Fields(out))))
}
