package cluster_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/test/k8s/cluster"
	"github.com/weirproxy/weir/test/parts"
)

const patience = 60 * time.Second

const workload = `
apiVersion: v1
kind: Service
metadata: {name: orders, namespace: shop}
spec: {selector: {app: orders}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec:
      initContainers: [{name: native, image: example, restartPolicy: Always}, {name: once, image: example}]
      containers: [{name: app, image: example}]
`

// A Deployment gets pods that are ready and reachable by their Service, and that go with it.
func TestWorkloadsRun(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	c.StartControllers(t)
	c.PlayNode(t, "node-a", nil)
	c.Namespace(t, "shop", nil)
	c.Apply(t, workload)
	shop := client.InNamespace("shop")
	parts.Eventually(t, patience, "a ready Deployment with endpoints", func() error {
		var d appsv1.Deployment
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "orders"}, &d); err != nil {
			return err
		}
		var slices discoveryv1.EndpointSliceList
		if err := c.Client.List(t.Context(), &slices, shop); err != nil {
			return err
		}
		if d.Status.ReadyReplicas != 2 || len(slices.Items) != 1 || len(slices.Items[0].Endpoints) != 2 {
			return errors.New("not yet")
		}
		return nil
	})
	c.Kubectl(t, "--namespace=shop", "delete", "deployment", "orders")
	parts.Eventually(t, patience, "no pod is left", func() error {
		var pods corev1.PodList
		if err := c.Client.List(t.Context(), &pods, shop); err != nil || len(pods.Items) == 0 {
			return err
		}
		return errors.New("there are pods")
	})
}

const webhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: refuse}
webhooks:
- name: refuse.example.com
  clientConfig: {service: {name: orders, namespace: shop, port: 80}, caBundle: %s}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`

// What kube-apiserver sends to a Service arrives where the test says, under the Service's name.
func TestServicesAreRouted(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	c.Namespace(t, "shop", nil)
	c.Apply(t, workload)
	asked := make(chan string, 100)
	server, ca := startTLS(t, "orders.shop.svc", func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.Error(w, "no", http.StatusTeapot)
	})
	c.Apply(t, fmt.Sprintf(webhook, base64.StdEncoding.EncodeToString(ca)))
	parts.Eventually(t, patience, "the webhook is asked for", func() error {
		out, err := c.TryKubectl(t, "--namespace=shop", "create", "configmap", "x", "--dry-run=server")
		if err == nil || !strings.Contains(out, "proxy error") {
			return fmt.Errorf("%s (%w)", out, err)
		}
		return nil
	})
	c.Route("shop", "orders", server)
	if out, err := c.TryKubectl(t, "--namespace=shop", "create", "configmap", "x"); err == nil {
		t.Errorf("created: %s", out)
	}
	select {
	case path := <-asked:
		if path != "/" {
			t.Errorf("asked for %s", path)
		}
	default:
		t.Error("nobody asked")
	}
}

// startTLS serves HTTPS under a name and returns its address and its authority, as PEM.
func startTLS(t *testing.T, name string, handler http.HandlerFunc) (address string, ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
