package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/weirproxy/weir/controller/certs"
	"github.com/weirproxy/weir/internal/inject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// caller is kube-apiserver's side: it trusts caBundle for the Service's name.
func caller(t *testing.T, socket string, live client.Client) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	for {
		c := &admissionregistrationv1.MutatingWebhookConfiguration{}
		if err := live.Get(t.Context(), client.ObjectKey{Name: "weir-injector"}, c); err != nil {
			t.Fatal(err)
		}
		if roots.AppendCertsFromPEM(c.Webhooks[0].ClientConfig.CABundle) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	transport := &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask sends a review until somebody listens.
func ask(t *testing.T, c *http.Client) *admissionv1.AdmissionResponse {
	t.Helper()
	r, _ := answered(t, c)
	return r
}

// answered is the answer to a review, and whether the server closed the connection after it.
func answered(t *testing.T, c *http.Client) (*admissionv1.AdmissionResponse, bool) {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{UID: "1", Namespace: "shop", Operation: admissionv1.Create,
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Object: rawOf(pod)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := c.Post("https://weir-webhook.weir-system.svc/inject?timeout=5s", "application/json", bytes.NewReader(body))
		if opErr := (*net.OpError)(nil); errors.As(err, &opErr) && opErr.Op == "dial" {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		var out admissionv1.AdmissionReview
		if err := json.Unmarshal(data, &out); err != nil || r.ProtoMajor != 1 {
			t.Fatalf("%s %v: %s", r.Proto, err, data)
		}
		return out.Response, r.Close
	}
}

// The whole of one replica: its certificate convinces whoever trusts caBundle, reviews are answered until the last
// is sent, and a settings file that went wrong is said and not used.
func TestAReplicaServesReviewsOverTLSUntilNobodySendsAnyMore(t *testing.T) {
	dir, err := os.MkdirTemp("", "w") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "settings.yaml")
	if err := os.WriteFile(file, []byte(goodSettings), 0o600); err != nil {
		t.Fatal(err)
	}
	live := fake.NewClientBuilder().WithObjects(namespaceOf("shop", inject.Enabled), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "weir-injector"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "namespace.inject.weirproxy.dev"}},
	}).Build()
	w, err := New(Config{
		Settings: file, Address: "unix://" + socket,
		Certificates: certs.Config{Mode: certs.SelfManaged, Namespace: "weir-system", Secret: "weir-webhook-tls", Service: "weir-webhook", Configuration: "weir-injector"},
	}, Dependencies{Client: live, Cluster: NewReader(live, live), Registry: prometheus.NewRegistry(), Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	drained, asked := make(chan time.Time), make(chan struct{})
	w.server.drained = func() <-chan time.Time { close(asked); return drained }
	if ready, _ := w.Ready(); ready {
		t.Error("ready before there is a certificate")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	c := caller(t, socket, live)
	if r := ask(t, c); !r.Allowed || r.Patch == nil {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile(file, []byte("image: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.settings.again()
	w.settings.again()
	if ready, why := w.Ready(); !ready || !strings.Contains(strings.Join(why, ""), "the last good settings are in force") {
		t.Errorf("with a bad settings file: %v %q", ready, why)
	}
	cancel()
	<-asked
	if r, closed := answered(t, c); r.Patch == nil || !closed {
		t.Errorf("between SIGTERM and the end, connection closed %v: %+v", closed, r)
	}
	close(drained)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWhatIsWrongAtTheStartIsAnError(t *testing.T) {
	for want, c := range map[string]Config{
		"injection.certificates.mode": {},
	} {
		if _, err := New(c, Dependencies{Registry: prometheus.NewRegistry(), Log: zap.NewNop()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func namespaceOf(name, label string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if label != "" {
		n.Labels = map[string]string{inject.Label: label}
	}
	return n
}
