package charts

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/test/k8s/cluster"
)

// guarded is that the controller's right to create Secrets is good for what it is meant for and nothing else: with the token of
// a Secret that it names itself it would be whoever it likes. What others do with Secrets is not looked at.
func guarded(t *testing.T, c *cluster.Cluster) {
	controller, other := as(t, c, "weir-controller"), c.Client
	for name, s := range map[string]*corev1.Secret{
		"a token":                       token("kube-system"),
		"a token, called a copy":        labelled(token("shop")),
		"a token, here":                 token(namespace),
		"another name":                  labelled(opaque("shop", "other")),
		"another name, here":            opaque(namespace, "other"),
		"a name that is made up":        labelled(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", GenerateName: "weir-identity"}}),
		"no copy":                       opaque("shop", "weir-identity"),
		"a copy of another namespace's": copyOf(opaque("shop", "weir-identity"), "default"),
		"the webhook's elsewhere":       labelled(opaque("shop", "weir-webhook-tls")),
		"its original":                  labelled(opaque(namespace, "weir-kafka")),
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, func() error { return controller.Create(t.Context(), s, client.DryRunAll) })
		})
	}
	t.Run("a copy's life", func(t *testing.T) {
		s := labelled(opaque("shop", "weir-identity"))
		must(t, controller.Create(t.Context(), s))
		s.Data = map[string][]byte{"identity.key": []byte("rotated")}
		must(t, controller.Update(t.Context(), s))
		must(t, controller.Delete(t.Context(), s))
	})
	t.Run("the webhook's own", func(t *testing.T) {
		s := &corev1.Secret{}
		must(t, other.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "weir-webhook-tls"}, s))
		err := controller.Update(t.Context(), s, client.DryRunAll)
		for range 300 { // what was in force before the last upgrade may be still
			if !apierrors.IsForbidden(err) {
				break
			}
			time.Sleep(100 * time.Millisecond)
			err = controller.Update(t.Context(), s, client.DryRunAll)
		}
		must(t, err)
	})
	t.Run("somebody's of that name", func(t *testing.T) {
		s := opaque("billing", "weir-identity")
		must(t, other.Create(t.Context(), s))
		refused(t, func() error { return controller.Update(t.Context(), labelled(s.DeepCopy()), client.DryRunAll) })
		refused(t, func() error { return controller.Delete(t.Context(), s, client.DryRunAll) })
		must(t, other.Delete(t.Context(), s))
	})
	t.Run("others", func(t *testing.T) {
		c.Apply(t, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: some, namespace: shop}\n")
		for _, s := range []*corev1.Secret{token("shop"), opaque("shop", "other"), opaque("shop", "weir-identity")} {
			s.Annotations = map[string]string{corev1.ServiceAccountNameKey: "some"}
			must(t, other.Create(t.Context(), s))
			must(t, other.Delete(t.Context(), s))
		}
	})
}

// mislabelled is that who labels a namespace with what asks for nothing is told so, and may.
func mislabelled(t *testing.T, c *cluster.Cluster) {
	for value, warned := range map[string]bool{"true": true, "enabled": false, "disabled": false} {
		out := c.Kubectl(t, "label", "namespace", "billing", "weirproxy.dev/inject="+value, "--overwrite")
		for range 100 { // a new policy is taken up a moment later
			if strings.Contains(out, "Warning") || !warned {
				break
			}
			out = c.Kubectl(t, "label", "namespace", "billing", "weirproxy.dev/inject="+value, "other="+value, "--overwrite", "--dry-run=server")
		}
		if got := strings.Contains(out, "the label weirproxy.dev/inject is enabled or disabled"); got != warned {
			t.Errorf("%s: %s", value, out)
		}
	}
	c.Kubectl(t, "label", "namespace", "billing", "weirproxy.dev/inject-")
}

// as is a client with the token's rights of an account of the release.
func as(t *testing.T, c *cluster.Cluster, account string) client.Client {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + account}
	out, err := client.New(config, client.Options{})
	must(t, err)
	return out
}

// refused waits until the release's policy refuses: kube-apiserver takes a new one up a moment after it was made.
func refused(t *testing.T, try func() error) {
	t.Helper()
	err := try()
	for range 300 {
		if err != nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
		err = try()
	}
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'weir-controller-secrets'") {
		t.Errorf("got %v", err)
	}
}

func opaque(ns, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Type: corev1.SecretTypeOpaque}
}

// token is a Secret that kube-controller-manager puts an account's token into.
func token(ns string) *corev1.Secret {
	s := opaque(ns, "weir-identity")
	s.Type = corev1.SecretTypeServiceAccountToken
	s.Annotations = map[string]string{corev1.ServiceAccountNameKey: "generic-garbage-collector"}
	return s
}

// labelled is a copy of the release's, as far as its label says.
func labelled(s *corev1.Secret) *corev1.Secret { return copyOf(s, namespace) }

func copyOf(s *corev1.Secret, of string) *corev1.Secret {
	s.Labels = map[string]string{"weirproxy.dev/copy-of": of}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
