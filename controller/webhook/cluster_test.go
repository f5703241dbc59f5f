package webhook

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/weirproxy/weir/internal/inject"
)

// down is a server that answers nothing.
func down() client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("connection refused")
		},
	})
}

func TestANamespaceLabelledAMomentAgoIsEnabled(t *testing.T) {
	service := func(name string, kind corev1.ServiceType) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: corev1.ServiceSpec{Type: kind, Selector: map[string]string{"app": name}}}
	}
	with := func(label string) client.Client {
		return fake.NewClientBuilder().WithObjects(namespaceOf("shop", label), service("orders", ""), service("far", corev1.ServiceTypeExternalName)).Build()
	}
	for name, tt := range map[string]struct {
		r     Reader
		label string
		fails bool
	}{
		"the cache knows it":        {r: Reader{Cache: with(inject.Enabled), Live: down()}, label: inject.Enabled},
		"the cache is behind":       {r: Reader{Cache: with(""), Live: with(inject.Enabled)}, label: inject.Enabled},
		"the namespace is new":      {r: Reader{Cache: fake.NewClientBuilder().Build(), Live: with(inject.Enabled)}, label: inject.Enabled},
		"it has no label":           {r: Reader{Cache: with(""), Live: with("")}},
		"nobody can say":            {r: Reader{Cache: with(""), Live: down()}, fails: true},
		"no label any more, cached": {r: Reader{Cache: with(inject.Disabled), Live: with("")}},
	} {
		got, err := tt.r.Around(t.Context(), "shop")
		if got.Label != tt.label || (err != nil) != tt.fails {
			t.Errorf("%s: %q, %v", name, got.Label, err)
		}
		if name == "the cache knows it" && (len(got.Services) != 1 || got.Services[0].Name != "orders" || got.Services[0].Selector["app"] != "orders") {
			t.Errorf("services %+v", got.Services)
		}
	}
}
