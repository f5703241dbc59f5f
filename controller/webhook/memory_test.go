package webhook

import (
	"bytes"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// Whoever reaches the port may send what takes a thousand times its bytes in Kubernetes' types. It is answered, and
// allocates no more than some tens of MiB.
func TestAReviewMadeToTakeMemoryTakesLittle(t *testing.T) {
	h := handler(t, enabled())
	empty := strings.Repeat(",{}", 1<<19)
	few := strings.Repeat(",{}", fewValues/2-100)
	for name, pod := range map[string]string{
		"many containers":         `{"spec":{"containers":[{}` + empty + `]}}`,
		"some containers":         `{"spec":{"containers":[{}` + few + `]}}`,
		"many volumes":            `{"spec":{"volumes":[{}` + empty + `],"containers":[{"name":"envoy"}]}}`,
		"many mounts":             `{"spec":{"containers":[{"name":"envoy","volumeMounts":[{}` + empty + `]}]}}`,
		"many labels":             `{"metadata":{"labels":{"a":""` + strings.Repeat(`,"a":""`, 1<<18) + `}},"spec":{"containers":[{"name":"envoy"}]}}`,
		"deep":                    `{"spec":` + strings.Repeat("[", 1<<20) + `}`,
		"as many as are let in":   `{"spec":{"containers":[{"name":"envoy","volumeMounts":[{}` + strings.Repeat(",{}", maxValues/2-200) + `]}]}}`,
		"one long text":           `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 2<<20) + `"}},"spec":{"containers":[{"name":"envoy"}]}}`,
		"an escaped quote, again": `{"metadata":{"annotations":{"a":"\"` + strings.Repeat(`\",{`, 1<<18) + `"}},"spec":{"containers":[{"name":"envoy"}]}}`,
	} {
		body := rawBody(pod)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", Path, bytes.NewReader(body)))
		runtime.ReadMemStats(&after)
		took := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %d KiB allocate %d MiB; %d: %.200s", name, len(body)>>10, took, w.Code, w.Body)
		if took > 96 {
			t.Errorf("%s: %d MiB were allocated", name, took)
		}
	}
}

// rawBody is a review by hand: the pod may be no JSON.
func rawBody(pod string) []byte {
	return []byte(`{"apiVersion":"` + apiVersion + `","kind":"AdmissionReview","request":{"uid":"1","namespace":"shop","operation":"CREATE",` +
		`"resource":{"version":"v1","resource":"pods"},"object":` + pod + `}}`)
}

func TestValuesAreCountedOutsideOfTexts(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `{}`: 1, `[1,2]`: 2, `{"a":"{,[","b":[{}]}`: 4, `{"\"{":1}`: 1, `"\\",{`: 2, `"`: 0, `"\`: 0,
	} {
		if got := values([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
