package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config() Config {
	return Config{Mode: SelfManaged, Namespace: "weir-system", Secret: "weir-webhook-tls", Service: "weir-webhook", Configuration: "weir-injector"}
}

// configuration is as the chart makes it, without caBundle.
func configuration() *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "weir-injector"},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "namespace.inject.weirproxy.dev"}, {Name: "pod.inject.weirproxy.dev"}},
	}
}

func replica(live client.WithWatch, now time.Time) *Certificates {
	c := New(config(), live, prometheus.NewRegistry(), zap.NewNop())
	c.now = func() time.Time { return now }
	return c
}

func served(t *testing.T, c *Certificates) *tls.Certificate {
	t.Helper()
	pair, err := c.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// trusted is caBundle of both webhooks.
func trusted(t *testing.T, live client.Client) []byte {
	t.Helper()
	got := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := live.Get(t.Context(), client.ObjectKey{Name: "weir-injector"}, got); err != nil {
		t.Fatal(err)
	}
	if len(got.Webhooks) != 2 || !bytes.Equal(got.Webhooks[0].ClientConfig.CABundle, got.Webhooks[1].ClientConfig.CABundle) {
		t.Fatalf("webhooks %+v", got.Webhooks)
	}
	return got.Webhooks[0].ClientConfig.CABundle
}

func TestReplicasShareWhatTheFirstOfThemMade(t *testing.T) {
	live := fake.NewClientBuilder().WithObjects(configuration()).Build()
	first, second := replica(live, start), replica(live, start)
	if ready, why := first.Ready(); ready || len(why) != 1 {
		t.Errorf("ready before there is a certificate: %v", why)
	}
	if _, err := first.GetCertificate(nil); err == nil {
		t.Error("a certificate before there is one")
	}
	for _, c := range []*Certificates{first, second, first} {
		if c.check(t.Context(), start); !bytes.Equal(served(t, c).Certificate[0], served(t, first).Certificate[0]) {
			t.Error("two replicas serve two certificates")
		}
	}
	s := state{serving: signed{cert: served(t, second).Leaf, key: mustDecode(t, live).serving.key}}
	var err error
	if s.authorities, err = decodeCerts(trusted(t, live)); err != nil || !s.serves(config().names(), start) {
		t.Errorf("kube-apiserver does not trust what is served (%v)", err)
	}
	if made := testutil.ToFloat64(first.metrics.renewals) + testutil.ToFloat64(second.metrics.renewals); made != 1 {
		t.Errorf("%v certificates were made", made)
	}
	if ready, why := second.Ready(); !ready || len(why) > 0 {
		t.Error(ready, why)
	}
}

func mustDecode(t *testing.T, live client.Client) state {
	t.Helper()
	object := &corev1.Secret{}
	if err := live.Get(t.Context(), client.ObjectKey{Namespace: "weir-system", Name: "weir-webhook-tls"}, object); err != nil {
		t.Fatal(err)
	}
	s, err := decode(object.Data)
	if err != nil || object.Type != corev1.SecretTypeOpaque {
		t.Fatal(object.Type, err)
	}
	return s
}

// Between a replica's reading and its writing another one writes.
func TestAReplicaThatWasSlowerTakesWhatTheOtherWrote(t *testing.T) {
	for name, from := range map[string]time.Time{"at the start": {}, "at a renewal": start} {
		live := fake.NewClientBuilder().WithObjects(configuration()).Build()
		now := start
		if !from.IsZero() {
			replica(live, start).check(t.Context(), start)
			now = start.Add(70 * day)
		}
		faster, once := replica(live, now), false
		overtake := func() {
			if !once {
				once = true
				faster.check(t.Context(), now)
			}
		}
		slow := replica(interceptor.NewClient(live, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				overtake()
				return c.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				overtake()
				return c.Update(ctx, o, opts...)
			},
		}), now)
		slow.check(t.Context(), now)
		if !once || !bytes.Equal(served(t, slow).Certificate[0], served(t, faster).Certificate[0]) {
			t.Errorf("%s: two certificates are served", name)
		}
		if _, why := slow.Ready(); len(why) > 0 {
			t.Errorf("%s: %v", name, why)
		}
	}
}

func TestACaBundleThatSomebodyEmptiesIsMended(t *testing.T) {
	live := fake.NewClientBuilder().WithObjects(configuration()).Build()
	c := replica(live, start)
	c.check(t.Context(), start)
	want := trusted(t, live)
	got := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := live.Get(t.Context(), client.ObjectKey{Name: "weir-injector"}, got); err != nil {
		t.Fatal(err)
	}
	got.Webhooks[1].ClientConfig.CABundle = nil
	got.Webhooks[0].ClientConfig.CABundle = []byte("another's")
	if err := live.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	c.check(t.Context(), start)
	if !bytes.Equal(trusted(t, live), want) {
		t.Error("it is not mended")
	}
}

func TestWhatIsWrongIsSaidAndTheLastGoodCertificateIsServed(t *testing.T) {
	live := fake.NewClientBuilder().Build()
	var fails error
	c := replica(interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if fails != nil {
				return fails
			}
			return w.Get(ctx, key, o, opts...)
		},
	}), start)
	c.check(t.Context(), start)
	if ready, why := c.Ready(); !ready || len(why) != 1 || !strings.Contains(why[0], "there is no MutatingWebhookConfiguration weir-injector") {
		t.Errorf("without the configuration: %v %v", ready, why)
	}
	if err := live.Create(t.Context(), configuration()); err != nil {
		t.Fatal(err)
	}
	if c.check(t.Context(), start); len(trusted(t, live)) == 0 {
		t.Error("the configuration that came later is not told")
	}
	first := served(t, c)
	for _, fails = range []error{errors.New("connection refused"), apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "weir-webhook-tls", errors.New("no"))} {
		c.check(t.Context(), start.Add(80*day))
		c.now = func() time.Time { return start.Add(80 * day) }
		ready, why := c.Ready()
		if said := strings.Join(why, "\n"); !ready || served(t, c) != first || !strings.Contains(said, fails.Error()) || !strings.Contains(said, "is not renewed") {
			t.Errorf("%v: ready %v, %q", fails, ready, why)
		}
	}
	if _, why := c.Ready(); !strings.Contains(strings.Join(why, ""), "the chart's Role gives this right") {
		t.Errorf("a missing right: %q", why)
	}
	fails = nil
	if c.check(t.Context(), start.Add(80*day)); served(t, c) == first {
		t.Error("it is not renewed once the server is back")
	}
	if _, why := c.Ready(); len(why) > 0 {
		t.Error(why)
	}
}

func TestASecretThatIsNoneIsReplaced(t *testing.T) {
	for name, data := range map[string]map[string][]byte{
		"empty": nil, "garbage": {keyCertificate: []byte("x"), keyKey: []byte("y")},
	} {
		live := fake.NewClientBuilder().WithObjects(configuration(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-webhook-tls"}, Type: corev1.SecretTypeOpaque, Data: data,
		}).Build()
		c := replica(live, start)
		if c.check(t.Context(), start); served(t, c).Leaf.NotAfter != start.Add(certificateLife) {
			t.Errorf("%s: no certificate of its own", name)
		}
		mustDecode(t, live)
	}
}

// A mounted Secret changes under the program.
func TestAPairOfFilesIsTakenUpWhenItChanges(t *testing.T) {
	dir := t.TempDir()
	c := New(Config{Mode: Files, Directory: dir}, nil, prometheus.NewRegistry(), zap.NewNop())
	c.now = func() time.Time { return start }
	if c.check(t.Context(), start); len(c.wrongs[0]) == 0 {
		t.Error("there are no files, and nothing is wrong")
	}
	var pairs []*tls.Certificate
	for range 2 {
		s, _ := renew(t, state{}, start, names)
		data, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{keyCertificate, keyKey} {
			if err := os.WriteFile(filepath.Join(dir, name), data[name], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c.check(t.Context(), start)
		pairs = append(pairs, served(t, c))
		if !bytes.Equal(served(t, c).Certificate[0], s.serving.cert.Raw) {
			t.Error("it is not the one of the files")
		}
	}
	if err := os.WriteFile(filepath.Join(dir, keyKey), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.check(t.Context(), start)
	if ready, why := c.Ready(); !ready || served(t, c) != pairs[1] || len(why) != 1 || !strings.Contains(why[0], dir) {
		t.Errorf("with half a pair: %v %v", ready, why)
	}
}

// Run hears of changes by itself, and leaves nothing behind.
func TestRunMendsWhatItSeesChange(t *testing.T) {
	live := fake.NewClientBuilder().WithObjects(configuration()).Build()
	c := New(config(), live, prometheus.NewRegistry(), zap.NewNop())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for len(trusted(t, live)) == 0 {
		time.Sleep(time.Millisecond)
	}
	want := trusted(t, live)
	got := configuration()
	for { // whoever writes between reading and writing: again
		if err := live.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
			t.Fatal(err)
		}
		got.Webhooks = configuration().Webhooks
		if err := live.Update(t.Context(), got); err == nil {
			break
		}
	}
	for len(trusted(t, live)) == 0 {
		time.Sleep(time.Millisecond)
	}
	if !bytes.Equal(trusted(t, live), want) {
		t.Error("another authority")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWhatAConfigurationLacksIsNamed(t *testing.T) {
	if err := config().Validate(); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]Config{
		"mode":      {Mode: "files"},
		"directory": {Mode: Files},
		"secret":    {Mode: SelfManaged, Service: "s", Configuration: "c"},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "injection.certificates."+want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
