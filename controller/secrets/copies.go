package secrets

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weirproxy/weir/internal/inject"
)

// LabelCopy is on every copy; its value is the namespace that it was copied from.
const LabelCopy = "weirproxy.dev/copy-of"

// Reasons of events.
const (
	reasonForeign = "SecretNotCopied"
	actionCopy    = "CopySecret"
)

// Copies brings one namespace's copies to what they should be: the namespace is the request's name. It is safe
// for concurrent use on different namespaces.
type Copies struct {
	// Namespace is the controller's own, where the originals are.
	Namespace string
	// Watched reports whether a namespace is looked at.
	Watched func(namespace string) bool
	// Secrets are the names of the originals, each with a cache of Secrets of that name in all namespaces.
	Secrets map[string]client.Reader
	// Reader has namespaces' metadata, and pods.
	Reader client.Reader
	Writer client.Writer
	Events events.EventRecorder
}

// Reconcile implements reconcile.Reconciler.
func (c *Copies) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	if r.Name == c.Namespace || !c.Watched(r.Name) {
		return reconcile.Result{}, nil
	}
	wanted, err := c.wanted(ctx, r.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	var errs []error
	for name := range c.Secrets {
		errs = append(errs, c.bring(ctx, r.Name, name, wanted))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// wanted reports whether a namespace asks for injection, or a pod in one that does not refuse it. Who may label a
// namespace so decides; a pod's label cannot bring the Secrets where they are not to be.
func (c *Copies) wanted(ctx context.Context, namespace string) (bool, error) {
	n := namespaceMetadata()
	if err := c.Reader.Get(ctx, client.ObjectKey{Name: namespace}, n); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	switch n.Labels[inject.Label] {
	case inject.Enabled:
		return true, nil
	case inject.Disabled:
		return false, nil
	}
	var pods corev1.PodList
	if err := c.Reader.List(ctx, &pods, client.InNamespace(namespace),
		client.MatchingLabels{inject.Label: inject.Enabled}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list the pods of namespace %s: %w", namespace, err)
	}
	for i := range pods.Items {
		if phase := pods.Items[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			return true, nil
		}
	}
	return false, nil
}

func namespaceMetadata() *metav1.PartialObjectMetadata {
	n := &metav1.PartialObjectMetadata{}
	n.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return n
}

func namespaceMetadataList() *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	return l
}

// bring makes, mends or removes one copy.
func (c *Copies) bring(ctx context.Context, namespace, name string, wanted bool) error {
	original, err := c.get(ctx, c.Namespace, name)
	if err != nil {
		return err
	}
	have, err := c.get(ctx, namespace, name)
	if err != nil {
		return err
	}
	switch {
	case wanted && original == nil:
		log.FromContext(ctx).Info("there is no Secret to copy; copies stay as they are", "secret", name)
		return nil
	case have == nil && !wanted:
		return nil
	case have == nil:
		return c.create(ctx, c.copied(original, namespace))
	case have.Labels[LabelCopy] != c.Namespace:
		if wanted {
			c.foreign(ctx, have)
		}
		return nil
	case !wanted:
		return c.remove(ctx, have)
	}
	return c.mend(ctx, have, c.copied(original, namespace))
}

// get returns nil where there is no such Secret.
func (c *Copies) get(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	var s corev1.Secret
	err := c.Secrets[name].Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &s)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", namespace, name, err)
	}
	return &s, nil
}

func (c *Copies) copied(original *corev1.Secret, namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: original.Name,
			Labels: map[string]string{LabelCopy: c.Namespace, "app.kubernetes.io/managed-by": "weir-controller"},
		},
		Type: original.Type,
		Data: original.Data,
	}
}

func (c *Copies) create(ctx context.Context, s *corev1.Secret) error {
	err := c.Writer.Create(ctx, s)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy Secret %s to namespace %s: %w", s.Name, s.Namespace, err)
	}
	log.FromContext(ctx).Info("Secret copied", "secret", s.Name)
	return nil
}

// mend makes have what want is. A Secret's type cannot change, nor an immutable one's content: it is made anew.
func (c *Copies) mend(ctx context.Context, have, want *corev1.Secret) error {
	if have.Type == want.Type && equality.Semantic.DeepEqual(have.Data, want.Data) {
		return nil
	}
	if have.Type != want.Type || have.Immutable != nil && *have.Immutable {
		if err := c.remove(ctx, have); err != nil {
			return err
		}
		return c.create(ctx, want)
	}
	changed := have.DeepCopy()
	changed.Data = want.Data
	if err := c.Writer.Update(ctx, changed); err != nil {
		return fmt.Errorf("bring the copy %s/%s up to date: %w", have.Namespace, have.Name, err)
	}
	log.FromContext(ctx).Info("copy of a Secret updated", "secret", have.Name)
	return nil
}

func (c *Copies) remove(ctx context.Context, s *corev1.Secret) error {
	err := c.Writer.Delete(ctx, s, client.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the copy %s/%s: %w", s.Namespace, s.Name, err)
	}
	log.FromContext(ctx).Info("copy of a Secret removed", "secret", s.Name)
	return nil
}

func (c *Copies) foreign(ctx context.Context, s *corev1.Secret) {
	log.FromContext(ctx).Info("a Secret of this name is there already, and is no copy; it is left alone", "secret", s.Name)
	c.Events.Eventf(s, nil, corev1.EventTypeWarning, reasonForeign, actionCopy,
		"this Secret is no copy of %s/%s and is left alone; sidecars here use what it holds. Rename it to have the copy made",
		c.Namespace, s.Name)
}
