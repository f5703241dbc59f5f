package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/internal/inject"
	"github.com/weirproxy/weir/internal/log"
)

var errNoSettings = errors.New("the injector's settings cannot be used; weir-controller's /readyz says why")

// Handler answers admission reviews. Make it with NewHandler; it is safe for concurrent use.
type Handler struct {
	engine  func() *inject.Engine
	cluster Cluster
	metrics *Metrics
	log     *zap.Logger
	places  places
}

// NewHandler makes a handler that injects by the engine of the moment; where that is nil, no pod gets a sidecar.
func NewHandler(engine func() *inject.Engine, cluster Cluster, m *Metrics, logger *zap.Logger) *Handler {
	return &Handler{engine: engine, cluster: cluster, metrics: m, log: sampled(logger), places: newPlaces()}
}

// ServeHTTP answers one review. What is none gets a 4xx, and what finds no place in time a 503, which kube-apiserver
// treats by the failure policy.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	t := &turn{places: h.places}
	defer t.end()
	request, err := t.begin(w, r)
	if bad := (badReview{}); errors.As(err, &bad) {
		h.metrics.reviewed(outcomeBad, time.Since(start))
		http.Error(w, bad.reason, bad.code)
		return
	} else if err != nil {
		h.metrics.reviewed(outcomeFailed, time.Since(start))
		h.log.Warn("a review is not answered, so its pod is created without a sidecar", zap.Error(err))
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	a := h.answer(r.Context(), request)
	t.end() // who reads slowly keeps nobody waiting
	h.metrics.reviewed(a.outcome, time.Since(start))
	h.say(request, a)
	if err := write(w, a.response(request)); err != nil {
		h.log.Debug("the answer to a review was not read", zap.Error(err))
	}
}

// begin reads a review and waits for its turn. After the body has come, a caller that gives up ends r's context.
func (t *turn) begin(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionRequest, error) {
	if r.Method != http.MethodPost {
		return nil, badReview{http.StatusMethodNotAllowed, "send an AdmissionReview by POST"}
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxWait)
	defer cancel()
	body, err := t.read(ctx, w, r)
	if err != nil {
		return nil, err
	}
	if err := t.take(ctx, t.work); err != nil {
		return nil, err
	}
	return reviewOf(body)
}

// answer is what became of one pod.
type answer struct {
	outcome  string
	reason   string
	patch    []byte
	warnings []string
}

func failed(err error) answer {
	return answer{outcome: outcomeFailed, reason: err.Error(),
		warnings: []string{"the pod is created without weir-sidecar, so no quota counts it: " + err.Error()}}
}

// answer decides on one request.
func (h *Handler) answer(ctx context.Context, request *admissionv1.AdmissionRequest) answer {
	if request.Resource != (metav1.GroupVersionResource{Version: "v1", Resource: "pods"}) ||
		request.SubResource != "" || request.Operation != admissionv1.Create {
		return answer{outcome: outcomeSkipped, reason: "it is no new pod; let the webhook's rules name CREATE of v1 pods only"}
	}
	if n := values(request.Object.Raw); n > maxValues {
		return failed(fmt.Errorf("the pod holds more than %d values (%d)", maxValues, n))
	}
	pod, meta, err := podOf(request)
	if err != nil {
		return failed(err)
	}
	label, err := h.namespaceLabel(ctx, request.Namespace, meta)
	if err != nil {
		return failed(err)
	}
	subject := inject.Subject{Namespace: request.Namespace, NamespaceLabel: label, Admitted: true}
	subject.OwnerKind, subject.OwnerName = inject.OwnerOf(meta)
	engine := h.engine()
	if engine == nil {
		return failed(errNoSettings)
	}
	out, err := engine.Inject(pod, subject)
	if mistake := (*inject.AnnotationError)(nil); errors.As(err, &mistake) {
		return answer{outcome: outcomeRefused, reason: err.Error()}
	} else if err != nil {
		return failed(err)
	}
	return decided(request, pod, out, asked(meta, label))
}

// namespaceLabel is not asked for where the pod's own label keeps it from a sidecar, whatever the namespace's says.
func (h *Handler) namespaceLabel(ctx context.Context, namespace string, meta metav1.ObjectMeta) (string, error) {
	if own, said := meta.Labels[inject.Label]; said && own != inject.Enabled {
		return "", nil
	}
	return h.cluster.Label(ctx, namespace)
}

func podOf(request *admissionv1.AdmissionRequest) (pod map[string]any, meta metav1.ObjectMeta, err error) {
	if pod, err = decodeObject(request.Object.Raw); err != nil {
		return nil, meta, err
	}
	var v struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(request.Object.Raw, &v); err != nil {
		return nil, meta, fmt.Errorf("decode the pod's metadata: %w", err)
	}
	return pod, v.Metadata, nil
}

// asked reports whether a label, right or wrong, asks for a sidecar.
func asked(meta metav1.ObjectMeta, namespaceLabel string) bool {
	if own, ok := meta.Labels[inject.Label]; ok {
		return own != inject.Disabled
	}
	return namespaceLabel == inject.Enabled
}

// decided is the answer for an engine's outcome. Whoever asked for a sidecar and gets none is told why.
func decided(request *admissionv1.AdmissionRequest, pod map[string]any, out inject.Outcome, asked bool) answer {
	a := answer{outcome: outcomeInjected, reason: out.Reason, warnings: out.Notes}
	if out.Action == inject.Skipped {
		a.outcome = outcomeSkipped
		if asked {
			a.warnings = append([]string{"the pod gets no weir-sidecar: " + out.Reason}, out.Notes...)
		}
		return a
	}
	before, err := decodeObject(request.Object.Raw)
	if err == nil {
		a.patch, err = patchFrom(before, pod)
	}
	if err == nil && len(a.patch) > maxPatch {
		err = fmt.Errorf("the patch would have %d bytes, at most %d", len(a.patch), maxPatch)
	}
	if err != nil {
		return failed(err)
	}
	if a.patch == nil {
		a.outcome = outcomeUnchanged
	}
	return a
}

// response is the answer as kube-apiserver reads it.
func (a answer) response(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	out := &admissionv1.AdmissionResponse{
		UID: request.UID, Allowed: a.outcome != outcomeRefused, Warnings: warnings(a.warnings),
		AuditAnnotations: map[string]string{"outcome": a.outcome, "reason": line(a.reason, maxWarning)},
	}
	if !out.Allowed {
		out.Result = &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden,
			Reason: metav1.StatusReasonForbidden, Message: line(a.reason, 4*maxWarning)}
	}
	if a.patch != nil {
		kind := admissionv1.PatchTypeJSONPatch
		out.Patch, out.PatchType = a.patch, &kind
	}
	return out
}

// say logs what a person should know of: what failed, and at debug all else.
func (h *Handler) say(request *admissionv1.AdmissionRequest, a answer) {
	name := request.Name
	if name == "" {
		name = "(not named yet)"
	}
	fields := []zap.Field{zap.String(log.Pod, request.Namespace+"/"+name), zap.String(log.Outcome, a.outcome), zap.String(log.Reason, a.reason)}
	if a.outcome == outcomeFailed {
		h.log.Warn("a pod is admitted without its sidecar", fields...)
		return
	}
	h.log.Debug("reviewed a pod", fields...)
}

// sampled passes ten lines of one message a minute: whoever reaches the port can cause any number.
func sampled(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, time.Minute, 10, 0)
	}))
}
