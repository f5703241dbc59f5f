package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Bounds of what is read. kube-apiserver stores objects of about 1.5 MiB, and a review holds one pod. A pod of 20
// containers, with what managers of its fields note, holds about 5,000 values.
const (
	MaxReview = 3 << 20 // bytes
	maxValues = 20_000  // of the pod
	maxPatch  = 1 << 20 // bytes, of the answer
)

const apiVersion = "admission.k8s.io/v1"

// badReview is a request that is no review; code is HTTP's.
type badReview struct {
	code   int
	reason string
}

func (e badReview) Error() string { return e.reason }

// unread says why a body did not come whole.
func unread(err error) badReview {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return badReview{http.StatusRequestEntityTooLarge, fmt.Sprintf("the review is larger than %d bytes", MaxReview)}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return badReview{http.StatusRequestTimeout, fmt.Sprintf("the review did not come within %v", readTimeout)}
	}
	return badReview{http.StatusBadRequest, "read the review: " + err.Error()}
}

// received is what is read of a review: who asks and for what else is not, and so takes no memory.
type received struct {
	metav1.TypeMeta `json:",inline"`
	Request         *struct {
		UID         types.UID                   `json:"uid"`
		Resource    metav1.GroupVersionResource `json:"resource"`
		SubResource string                      `json:"subResource"`
		Name        string                      `json:"name"`
		Namespace   string                      `json:"namespace"`
		Operation   admissionv1.Operation       `json:"operation"`
		Object      runtime.RawExtension        `json:"object"`
	} `json:"request"`
}

// reviewOf is the request within a body.
func reviewOf(body []byte) (*admissionv1.AdmissionRequest, error) {
	var review received
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, badReview{http.StatusBadRequest, "this is no AdmissionReview: " + err.Error()}
	}
	r := review.Request
	switch {
	case review.APIVersion != apiVersion || review.Kind != "AdmissionReview":
		return nil, badReview{http.StatusBadRequest, fmt.Sprintf("%q %q: this webhook reads AdmissionReview of %s; set admissionReviewVersions: [v1]", review.APIVersion, review.Kind, apiVersion)}
	case r == nil:
		return nil, badReview{http.StatusBadRequest, "the review has no request"}
	}
	return &admissionv1.AdmissionRequest{
		UID: r.UID, Resource: r.Resource, SubResource: r.SubResource, Name: r.Name, Namespace: r.Namespace,
		Operation: r.Operation, Object: r.Object,
	}, nil
}

// write answers a review.
func write(w http.ResponseWriter, response *admissionv1.AdmissionResponse) error {
	data, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: "AdmissionReview"}, Response: response,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(data)
	return err
}

// decodeObject decodes one JSON object and keeps its numbers as they are written.
func decodeObject(data []byte) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var o map[string]any
	if err := dec.Decode(&o); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("decode the object: %w", err)
	}
	if o == nil {
		return nil, errors.New("the review holds no object")
	}
	return o, nil
}

// Bounds of what a review's answer says: warnings travel as HTTP headers.
const (
	maxWarnings = 8
	maxWarning  = 500
)

// warnings are what a person is told, each in one bounded line.
func warnings(texts []string) (out []string) {
	for _, text := range texts[:min(len(texts), maxWarnings)] {
		out = append(out, "weir: "+line(text, maxWarning))
	}
	return out
}

func line(text string, limit int) string {
	text = strings.ToValidUTF8(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; "), "?")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
