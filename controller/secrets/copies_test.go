package secrets

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weirproxy/weir/internal/inject"
)

const own = "weir-system"

// world is a cluster with one Secret to copy, and counts what is written.
type world struct {
	client.Client
	t      *testing.T
	copies *Copies
	events *events.FakeRecorder
	writes int
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, events: events.NewFakeRecorder(10)}
	w.Client = fake.NewClientBuilder().WithObjects(append(objects, original("key"))...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			w.writes++
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			w.writes++
			return c.Update(ctx, o, opts...)
		},
	}).Build()
	w.copies = &Copies{
		Namespace: own, Watched: func(n string) bool { return n != "unwatched" },
		Secrets: map[string]client.Reader{"weir-identity": w.Client},
		Reader:  w.Client, Writer: w.Client, Events: w.events,
	}
	return w
}

func original(content string) *corev1.Secret {
	return secret(own, content, nil)
}

func secret(namespace, content string, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "weir-identity", Labels: labels},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{"identity.key": []byte(content)},
	}
}

func namespace(name, label string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if label != "" {
		n.Labels = map[string]string{inject.Label: label}
	}
	return n
}

func pod(label string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: map[string]string{inject.Label: label}},
		Status:     corev1.PodStatus{Phase: phase},
	}
}

func (w *world) reconcile(name string) {
	w.t.Helper()
	if _, err := w.copies.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
		w.t.Fatal(err)
	}
}

// content is the copy's, or "none".
func (w *world) content(namespace string) string {
	w.t.Helper()
	var s corev1.Secret
	err := w.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: "weir-identity"}, &s)
	if apierrors.IsNotFound(err) {
		return "none"
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return string(s.Data["identity.key"])
}

func TestWhoGetsCopies(t *testing.T) {
	for name, c := range map[string]struct {
		objects []client.Object
		copied  bool
	}{
		"the label asks":                     {[]client.Object{namespace("shop", inject.Enabled)}, true},
		"no label":                           {[]client.Object{namespace("shop", "")}, false},
		"the label refuses":                  {[]client.Object{namespace("shop", inject.Disabled)}, false},
		"a pod asks":                         {[]client.Object{namespace("shop", ""), pod(inject.Enabled, corev1.PodPending)}, true},
		"a pod asks where the label refuses": {[]client.Object{namespace("shop", inject.Disabled), pod(inject.Enabled, corev1.PodRunning)}, false},
		"the pod that asked has ended":       {[]client.Object{namespace("shop", ""), pod(inject.Enabled, corev1.PodSucceeded)}, false},
		"a pod refuses, but others may come": {[]client.Object{namespace("shop", inject.Enabled), pod(inject.Disabled, corev1.PodRunning)}, true},
		"the namespace is gone":              {nil, false},
	} {
		w := newWorld(t, c.objects...)
		w.reconcile("shop")
		if got := w.content("shop") == "key"; got != c.copied {
			t.Errorf("%s: copied %v, want %v", name, got, c.copied)
		}
		writes := w.writes
		if w.reconcile("shop"); w.writes != writes {
			t.Errorf("%s: written again though nothing changed", name)
		}
	}
}

func TestCopiesFollowTheOriginalAndGoWithTheLabel(t *testing.T) {
	w := newWorld(t, namespace("shop", inject.Enabled))
	w.reconcile("shop")
	change := func(o client.Object, f func()) {
		t.Helper()
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		f()
		if err := w.Client.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		w.reconcile("shop")
	}
	o := original("")
	change(o, func() { o.Data["identity.key"] = []byte("rotated") })
	if got := w.content("shop"); got != "rotated" {
		t.Errorf("the copy has %q after the original changed", got)
	}
	c := secret("shop", "", nil)
	change(c, func() { c.Data = map[string][]byte{"identity.key": []byte("forged")} })
	if got := w.content("shop"); got != "rotated" {
		t.Errorf("the copy has %q after somebody changed it", got)
	}
	if err := w.Delete(t.Context(), original("")); err != nil {
		t.Fatal(err)
	}
	if w.reconcile("shop"); w.content("shop") != "rotated" {
		t.Error("the copy went with the original: pods that start would wait for it")
	}
	n := namespace("shop", "")
	change(n, func() { n.Labels = nil })
	if got := w.content("shop"); got != "none" {
		t.Errorf("the copy has %q after the label went", got)
	}
}

// What cannot be changed in place is made anew.
func TestACopyOfAnotherTypeIsMadeAnew(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.Secret){
		"type":      func(s *corev1.Secret) { s.Type = corev1.SecretTypeTLS },
		"immutable": func(s *corev1.Secret) { s.Immutable, s.Data = new(true), nil },
	} {
		old := secret("shop", "key", map[string]string{LabelCopy: own})
		spoil(old)
		w := newWorld(t, namespace("shop", inject.Enabled), old)
		w.reconcile("shop")
		var s corev1.Secret
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(old), &s); err != nil {
			t.Fatal(err)
		}
		if s.Type != corev1.SecretTypeOpaque || s.Immutable != nil || !bytes.Equal(s.Data["identity.key"], []byte("key")) {
			t.Errorf("%s: the copy is %v %v", name, s.Type, s.Data)
		}
	}
}

func TestForeignSecretsAreLeftAlone(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"somebody's":             nil,
		"another installation's": {LabelCopy: "other-weir"},
	} {
		w := newWorld(t, namespace("shop", inject.Enabled), secret("shop", "theirs", labels))
		w.reconcile("shop")
		if got := w.content("shop"); got != "theirs" {
			t.Errorf("%s: it has %q now", name, got)
		}
		select {
		case e := <-w.events.Events:
			if want := "Warning SecretNotCopied"; len(e) < len(want) || e[:len(want)] != want {
				t.Errorf("%s: event %q", name, e)
			}
		default:
			t.Errorf("%s: no event", name)
		}
		n := namespace("shop", "")
		if err := w.Client.Update(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if w.reconcile("shop"); w.content("shop") != "theirs" {
			t.Errorf("%s: it went with the label", name)
		}
	}
}

func TestOnlyWatchedNamespacesGetCopiesAndNeverTheOwn(t *testing.T) {
	w := newWorld(t, namespace("unwatched", inject.Enabled), namespace(own, inject.Enabled))
	for _, n := range []string{"unwatched", own} {
		w.reconcile(n)
	}
	if w.writes != 0 || w.content("unwatched") != "none" || w.content(own) != "key" {
		t.Error("something was written")
	}
}

func TestAFailureOfOneSecretIsToldAndLeavesTheOthers(t *testing.T) {
	w := newWorld(t, namespace("shop", inject.Enabled))
	w.copies.Secrets["weir-kafka"] = broken{}
	_, err := w.copies.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "shop"}})
	if err == nil || w.content("shop") != "key" {
		t.Errorf("error %v, the other copy has %q", err, w.content("shop"))
	}
}

type broken struct{ client.Reader }

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return fmt.Errorf("no")
}
