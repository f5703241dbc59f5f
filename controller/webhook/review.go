package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxReview bounds a review, bytes. kube-apiserver takes objects of 3 MiB, and a review holds one pod.
const MaxReview = 8 << 20

const apiVersion = "admission.k8s.io/v1"

// badReview is a request that is no review; code is HTTP's.
type badReview struct {
	code   int
	reason string
}

func (e badReview) Error() string { return e.reason }

// readReview is the request within r's body.
func readReview(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionRequest, error) {
	if r.Method != http.MethodPost {
		return nil, badReview{http.StatusMethodNotAllowed, "send an AdmissionReview by POST"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxReview))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, badReview{http.StatusRequestEntityTooLarge, fmt.Sprintf("the review is larger than %d bytes", MaxReview)}
	} else if err != nil {
		return nil, badReview{http.StatusBadRequest, "read the review: " + err.Error()}
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, badReview{http.StatusBadRequest, "this is no AdmissionReview: " + err.Error()}
	}
	switch {
	case review.APIVersion != apiVersion || review.Kind != "AdmissionReview":
		return nil, badReview{http.StatusBadRequest, fmt.Sprintf("%q %q: this webhook reads AdmissionReview of %s; set admissionReviewVersions: [v1]", review.APIVersion, review.Kind, apiVersion)}
	case review.Request == nil:
		return nil, badReview{http.StatusBadRequest, "the review has no request"}
	}
	return review.Request, nil
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
