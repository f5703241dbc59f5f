package secrets

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/weirproxy/weir/internal/inject"
)

func TestWhichNamespacesASecretConcerns(t *testing.T) {
	w := newWorld(t, namespace("shop", ""), namespace("cart", inject.Enabled))
	f := follower{reader: w.Client, namespace: own}
	for _, c := range []struct {
		secret *corev1.Secret
		want   []string
	}{{secret("shop", "", nil), []string{"shop"}}, {original(""), []string{"cart", "shop"}}} {
		var got []string
		for _, r := range f.namespaces(t.Context(), c.secret) {
			got = append(got, r.Name)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("of %s: %v, want %v", c.secret.Namespace, got, c.want)
		}
	}
}

func TestWhichPodsMatter(t *testing.T) {
	p := asked()
	running, ended := pod(inject.Enabled, corev1.PodRunning), pod(inject.Enabled, corev1.PodSucceeded)
	other := pod(inject.Disabled, corev1.PodRunning)
	for what, c := range map[string]struct{ got, want bool }{
		"a pod that asks comes":   {p.Create(event.CreateEvent{Object: running}), true},
		"it goes":                 {p.Delete(event.DeleteEvent{Object: running}), true},
		"another comes":           {p.Create(event.CreateEvent{Object: other}), false},
		"it ends":                 {p.Update(event.UpdateEvent{ObjectOld: running, ObjectNew: ended}), true},
		"it asks no more":         {p.Update(event.UpdateEvent{ObjectOld: running, ObjectNew: other}), true},
		"nothing of this changes": {p.Update(event.UpdateEvent{ObjectOld: running, ObjectNew: running}), false},
		"another changes":         {p.Update(event.UpdateEvent{ObjectOld: other, ObjectNew: other}), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: looked at %v, want %v", what, c.got, c.want)
		}
	}
}
