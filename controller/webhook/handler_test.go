package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weirproxy/weir/internal/inject"
)

// around is a cluster with one answer.
type around struct {
	label string
	err   error
}

func (a around) Label(context.Context, string) (string, error) { return a.label, a.err }

func enabled() around { return around{label: inject.Enabled} }

func engine(t testing.TB, change func(*inject.Settings)) *inject.Engine {
	t.Helper()
	s := inject.DefaultSettings()
	s.Image, s.Kafka.Brokers = "registry.example/weir-sidecar:1", []string{"kafka:9092"}
	if change != nil {
		change(&s)
	}
	e, err := inject.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func handler(t testing.TB, c Cluster) *Handler {
	e := engine(t, nil)
	return NewHandler(func() *inject.Engine { return e }, c, NewMetrics(prometheus.NewRegistry()), zap.NewNop())
}

const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"orders-5d8-","namespace":"shop","labels":{"app":"orders","pod-template-hash":"5d8"},
	"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"orders-5d8","uid":"u","controller":true}]},
	"spec":{"aFieldOfTomorrow":{"n":9007199254740993},"containers":[{"name":"envoy","image":"e"},{"name":"app","image":"a"}]}}`

func rawOf(pod string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(pod)} }

// review asks h about a pod's creation.
func review(t testing.TB, h http.Handler, pod string, change ...func(*admissionv1.AdmissionRequest)) *admissionv1.AdmissionResponse {
	t.Helper()
	request := &admissionv1.AdmissionRequest{UID: "1", Namespace: "shop", Operation: admissionv1.Create,
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"}, Object: rawOf(pod)}
	for _, c := range change {
		c(request)
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "AdmissionReview"}, Request: request})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/inject", bytes.NewReader(body)))
	var out admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 || out.Response == nil || out.Response.UID != "1" {
		t.Fatalf("%d (%v): %s", w.Code, err, w.Body)
	}
	return out.Response
}

// patched is the pod as the server makes it of the answer.
func patched(t *testing.T, pod string, r *admissionv1.AdmissionResponse) (*corev1.Pod, string) {
	t.Helper()
	if !r.Allowed || r.Patch == nil || *r.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("no patch: %+v", r)
	}
	steps, err := jsonpatch.DecodePatch(r.Patch)
	if err != nil {
		t.Fatal(err)
	}
	text, err := steps.Apply([]byte(pod))
	if err != nil {
		t.Fatal(err)
	}
	out := &corev1.Pod{}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out, string(text)
}

func TestAPodOfADeploymentIsInjectedForItsDeploymentAndServices(t *testing.T) {
	h := handler(t, enabled())
	r := review(t, h, pod)
	got, text := patched(t, pod, r)
	if len(got.Spec.InitContainers) != 1 || got.Spec.InitContainers[0].Name != inject.Container {
		t.Fatalf("init containers %+v", got.Spec.InitContainers)
	}
	args := strings.Join(got.Spec.InitContainers[0].Args, " ")
	for _, want := range []string{"--pod-owner-kind=Deployment", "--pod-owner-name=orders", "--pod-labels=app=orders"} {
		if !strings.Contains(args, want) {
			t.Errorf("%s is missing in %s", want, args)
		}
	}
	if !strings.Contains(text, `"aFieldOfTomorrow":{"n":9007199254740993}`) {
		t.Errorf("a field that this build does not know is lost: %s", text)
	}
	if why := r.AuditAnnotations["reason"]; !strings.Contains(why, "Deployment/orders and the Services that select it") || len(r.Warnings) > 0 {
		t.Errorf("reason %q, warnings %q", why, r.Warnings)
	}
	if strings.Contains(string(r.Patch), `"name":"app"`) {
		t.Errorf("the patch repeats the pod's own containers: %s", r.Patch)
	}
	if again := review(t, h, text); again.Patch != nil || again.AuditAnnotations["outcome"] != outcomeUnchanged {
		t.Errorf("a second review: %+v", again)
	}
}

// Only what the author wrote in weir's annotations is refused; whatever else stands against a sidecar admits the
// pod as it is.
func TestWhatIsNotThePodsMistakeNeverRefusesIt(t *testing.T) {
	with := func(annotation, value string) string {
		return strings.Replace(pod, `"labels":{`, `"annotations":{"`+annotation+`":"`+value+`"},"labels":{`, 1)
	}
	labelled := func(value string) string {
		return strings.Replace(pod, `"labels":{`, `"labels":{"`+inject.Label+`":"`+value+`",`, 1)
	}
	for name, tt := range map[string]struct {
		pod     string
		cluster around
		change  func(*admissionv1.AdmissionRequest)
		outcome string
		says    string // in the refusal or a warning
	}{
		"a wrong target":             {pod: with(inject.AnnotationTarget, "orders"), cluster: enabled(), outcome: outcomeRefused, says: inject.AnnotationTarget},
		"a target of others":         {pod: with(inject.AnnotationTarget, "bank/Service/vault"), cluster: enabled(), outcome: outcomeFailed, says: "foreignTargets"},
		"a wrong quantity":           {pod: with(inject.AnnotationCPULimit, "much"), cluster: enabled(), outcome: outcomeRefused, says: "cpu-limit"},
		"a mistyped annotation":      {pod: with("weirproxy.dev/tarjet", "Service/orders"), cluster: enabled(), outcome: outcomeInjected, says: "did you mean weirproxy.dev/target"},
		"a kind that is none":        {pod: with(inject.AnnotationTarget, "service/orders"), cluster: enabled(), outcome: outcomeRefused, says: "write Service"},
		"above the settings' limit":  {pod: with(inject.AnnotationMemoryRequest, "1Gi"), cluster: enabled(), outcome: outcomeInjected, says: "request for memory is 192Mi"},
		"the metrics' port":          {pod: with(inject.AnnotationListen, "tcp://127.0.0.1:9194"), cluster: enabled(), outcome: outcomeFailed, says: "for its metrics"},
		"the admin server's port":    {pod: with(inject.AnnotationListen, "tcp://127.0.0.1:9192"), cluster: enabled(), outcome: outcomeRefused, says: "for its admin server"},
		"a proxy that comes later":   {pod: with(inject.AnnotationProxy, "kuma-sidecar"), cluster: enabled(), outcome: outcomeInjected, says: "unless another injector adds it"},
		"a port that is taken":       {pod: strings.Replace(pod, `"name":"app",`, `"name":"app","ports":[{"containerPort":9194}],`, 1), cluster: enabled(), outcome: outcomeFailed, says: "port 9194"},
		"the cluster does not say":   {pod: pod, cluster: around{err: errors.New("no answer from the server")}, outcome: outcomeFailed, says: "no answer from the server"},
		"no pod":                     {pod: `{"spec":{"containers":"none"}}`, cluster: enabled(), outcome: outcomeFailed, says: "without weir-sidecar"},
		"metadata of a wrong type":   {pod: `{"metadata":[]}`, cluster: enabled(), outcome: outcomeFailed, says: "metadata"},
		"null":                       {pod: `null`, cluster: enabled(), outcome: outcomeFailed, says: "no object"},
		"on the host's network":      {pod: strings.Replace(pod, `"spec":{`, `"spec":{"hostNetwork":true,`, 1), cluster: enabled(), outcome: outcomeSkipped, says: "host's network"},
		"a label of another word":    {pod: labelled("true"), cluster: around{}, outcome: outcomeSkipped, says: "enabled or disabled"},
		"a pod that opts out":        {pod: labelled("disabled"), cluster: enabled(), outcome: outcomeSkipped},
		"a namespace that does not":  {pod: pod, outcome: outcomeSkipped},
		"a pod that opts in":         {pod: labelled("enabled"), outcome: outcomeInjected},
		"where nobody gets one":      {pod: labelled("enabled"), cluster: around{label: inject.Disabled}, outcome: outcomeSkipped, says: "its namespace's label"},
		"another resource":           {pod: pod, cluster: enabled(), outcome: outcomeSkipped, change: func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "services" }},
		"an update":                  {pod: pod, cluster: enabled(), outcome: outcomeSkipped, change: func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update }},
		"an ephemeral container":     {pod: pod, cluster: enabled(), outcome: outcomeSkipped, change: func(r *admissionv1.AdmissionRequest) { r.SubResource = "ephemeralcontainers" }},
		"a dry run, as any creation": {pod: pod, cluster: enabled(), outcome: outcomeInjected, change: func(r *admissionv1.AdmissionRequest) { r.DryRun = new(true) }},
	} {
		h := handler(t, tt.cluster)
		if tt.change == nil {
			tt.change = func(*admissionv1.AdmissionRequest) {}
		}
		r := review(t, h, tt.pod, tt.change)
		if got := r.AuditAnnotations["outcome"]; got != tt.outcome || r.Allowed != (tt.outcome != outcomeRefused) || (r.Patch != nil) != (tt.outcome == outcomeInjected) {
			t.Errorf("%s: %s, %+v", name, got, r)
		}
		said := strings.Join(r.Warnings, "\n")
		if r.Result != nil {
			said += r.Result.Message
		}
		if (said == "") != (tt.says == "") || !strings.Contains(said, tt.says) {
			t.Errorf("%s: says %q, want %q", name, said, tt.says)
		}
		if n := testutil.ToFloat64(h.metrics.reviews.WithLabelValues(tt.outcome)); n != 1 {
			t.Errorf("%s: counted %v times as %s", name, n, tt.outcome)
		}
	}
}

// Warnings are HTTP headers: a line break in one would be an attack or lose them all.
func TestWarningsAreBoundedLines(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = "a\r\nb" + strings.Repeat("é", 1000)
	}
	got := warnings(many)
	if len(got) != maxWarnings || strings.ContainsAny(got[0], "\r\n") || len(got[0]) > maxWarning+10 || !strings.HasPrefix(got[0], "weir: a; bé") {
		t.Errorf("%d warnings, the first %q", len(got), got[0])
	}
}

func TestWhatIsNoReviewIsRefusedByHTTP(t *testing.T) {
	h := handler(t, enabled())
	for body, code := range map[string]int{
		``: 400, `[]`: 400, `{}`: 400,
		`{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{}}`: 400,
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`:                   400,
		`{"x":"` + strings.Repeat("x", MaxReview) + `"}`:                                  413,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/inject", strings.NewReader(body)))
		if w.Code != code {
			t.Errorf("%.60s: %d, want %d", body, w.Code, code)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/inject", http.NoBody))
	if w.Code != 405 {
		t.Errorf("GET: %d", w.Code)
	}
	if n := testutil.ToFloat64(h.metrics.reviews.WithLabelValues(outcomeBad)); n != 7 {
		t.Errorf("%v bad reviews counted, want 7", n)
	}
}

// What one pod's review costs, from the body to the answer.
func BenchmarkReview(b *testing.B) {
	h := handler(b, enabled())
	b.ReportAllocs()
	for b.Loop() {
		if r := review(b, h, pod); r.Patch == nil {
			b.Fatal(r)
		}
	}
}

// Whatever comes is answered, and an answer's patch applies.
func FuzzReview(f *testing.F) {
	f.Add([]byte(pod))
	f.Add([]byte(`{"metadata":{"annotations":{"weirproxy.dev/injected":"{\"supplementalGroup\":1}"}},"spec":{"securityContext":{"supplementalGroups":[1,2.5]},"containers":[{"name":"weir-sidecar"},{"volumeMounts":[7]}],"volumes":[null]}}`))
	h := handler(f, enabled())
	f.Fuzz(func(t *testing.T, object []byte) {
		if !json.Valid(object) {
			return
		}
		r := review(t, h, string(object))
		if r.Patch == nil {
			return
		}
		if _, text := patched(t, string(object), r); review(t, h, text).Patch != nil {
			t.Errorf("a second review changes it again:\n%s\n%s", object, text)
		}
	})
}
