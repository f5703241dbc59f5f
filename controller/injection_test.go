package controller

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/controller/webhook"
)

// A Deployment of hundreds is scaled up in namespaces that the cache does not know yet: each review reads, and none
// of them waits for a limit of the client's.
func TestABurstOfReviewsIsNotSlowedByTheClient(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"shop"}}`)
	}))
	defer server.Close()
	cfg := valid()
	cfg.REST = &rest.Config{Host: server.URL}
	to, err := cfg.rest()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	live, err := client.New(to, client.Options{Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	r := webhook.NewReader(live, live)
	var failed atomic.Int32
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			if _, err := r.Label(t.Context(), fmt.Sprint("shop-", i)); err != nil {
				failed.Add(1)
				t.Log(err)
			}
		})
	}
	all.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d of 100 reads failed", n)
	}
}
