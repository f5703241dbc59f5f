package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func bodyOf(t testing.TB, pod string) []byte {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{UID: "1", Namespace: "shop", Operation: admissionv1.Create,
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Object: rawOf(pod)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// serves is a server of h without TLS, and its address.
func serves(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := server{handler: h, log: zap.NewNop()}.http(&atomic.Bool{})
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return l.Addr().String()
}

// begun is a connection that has sent so much.
func begun(t *testing.T, address, text string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

const slow = "POST /inject HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"

// reviewed is the status of an honest review at address.
func reviewed(t *testing.T, address, pod string) int {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	r, err := (&http.Client{Transport: transport}).Post("http://"+address+Path, "application/json", bytes.NewReader(bodyOf(t, pod)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	_, _ = io.Copy(io.Discard, r.Body)
	return r.StatusCode
}

// Others that send nothing more, or slowly, take no place from a pod's review; and they are cut off.
func TestSlowCallersKeepNobodyWaiting(t *testing.T) {
	h := handler(t, enabled())
	address := serves(t, h)
	var callers []net.Conn
	for range 4 * maxReviews {
		callers = append(callers, begun(t, address, slow))
	}
	if code := reviewed(t, address, pod); code != http.StatusOK {
		t.Errorf("an honest review: %d", code)
	}
	if n := testutil.ToFloat64(h.metrics.reviews.WithLabelValues(outcomeBad)); n != 0 {
		t.Errorf("%v slow callers had ended before: nothing was shown", n)
	}
	for _, c := range callers {
		answer, err := io.ReadAll(c)
		if err != nil || !strings.Contains(string(answer), "408 Request Timeout") {
			t.Fatalf("a slow caller is told %q, %v", answer, err)
		}
	}
}

// hanging is a cluster that answers once it is let go, and says who asks.
type hanging struct{ asked, let chan struct{} }

func (h hanging) Label(ctx context.Context, _ string) (string, error) {
	h.asked <- struct{}{}
	<-h.let
	return "", ctx.Err()
}

// With all places taken, who gives up leaves, and who stays is told in time for the failure policy.
func TestWhoWaitsForAPlaceMayGiveUpAndIsToldInTime(t *testing.T) {
	cluster := hanging{make(chan struct{}), make(chan struct{})}
	h := handler(t, cluster)
	address := serves(t, h)
	ended := make(chan int, maxReviews)
	for range maxReviews {
		go func() { ended <- reviewed(t, address, pod) }()
		<-cluster.asked
	}
	body := bodyOf(t, pod)
	gone := begun(t, address, fmt.Sprintf("POST /inject HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	gone.Close()
	failed := func() float64 { return testutil.ToFloat64(h.metrics.reviews.WithLabelValues(outcomeFailed)) }
	for failed() != 1 {
		time.Sleep(time.Millisecond)
	}
	if code := reviewed(t, address, pod); code != http.StatusServiceUnavailable || failed() != 2 {
		t.Errorf("with all places taken: %d, %v failed", code, failed())
	}
	close(cluster.let)
	for range maxReviews {
		if code := <-ended; code != http.StatusOK {
			t.Errorf("a review that was begun: %d", code)
		}
	}
}

// Where there is one connection too many, it is not the one that has just come.
func TestTheConnectionThatWaitsLongestGoes(t *testing.T) {
	c := newConnections(2)
	conn := func() net.Conn { a, b := net.Pipe(); t.Cleanup(func() { a.Close(); b.Close() }); return a }
	first, second, third, fourth, fifth := conn(), conn(), conn(), conn(), conn()
	for i, step := range []struct {
		conn  net.Conn
		state http.ConnState
		out   net.Conn
	}{
		{first, http.StateNew, nil}, {second, http.StateNew, nil}, {third, http.StateNew, first},
		{second, http.StateActive, nil}, {second, http.StateIdle, nil}, {fourth, http.StateNew, third},
		{second, http.StateActive, nil}, {fourth, http.StateActive, nil}, {fifth, http.StateNew, fifth},
		{second, http.StateClosed, nil}, {fifth, http.StateNew, nil},
	} {
		if out := c.count(step.conn, step.state); out != step.out {
			t.Errorf("step %d: another connection went", i)
		}
	}
	if len(c.open) != 2 {
		t.Errorf("%d are open", len(c.open))
	}
}

func TestConnectionsAreBoundedAndAnHonestReviewStillComesIn(t *testing.T) {
	address := serves(t, handler(t, enabled()))
	for range maxConnections + 20 {
		begun(t, address, "")
	}
	if code := reviewed(t, address, pod); code != http.StatusOK {
		t.Errorf("%d", code)
	}
}

// Whoever reaches the port can cause any number of lines.
func TestTheLogOfFailedReviewsIsBounded(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	h := NewHandler(nil, around{err: context.DeadlineExceeded}, NewMetrics(prometheus.NewRegistry()), zap.New(core))
	for range 100 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", Path, bytes.NewReader(bodyOf(t, pod))))
	}
	if n := logs.Len(); n < 1 || n > 20 {
		t.Errorf("%d lines for 100 reviews that failed", n)
	}
}
