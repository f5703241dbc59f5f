package certs

import (
	"bytes"
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=weir-injector,verbs=get;watch;patch

// bundle keeps caBundle of all webhooks of one configuration.
type bundle struct {
	client client.Client
	name   string
}

// ensure writes trusted where it is not there yet, and reports whether it wrote. Whoever else changed the
// configuration meanwhile is not overwritten: it is tried again.
func (b bundle) ensure(ctx context.Context, trusted []byte) (wrote bool, err error) {
	for range maxTries {
		if wrote, err = b.once(ctx, trusted); !apierrors.IsConflict(err) {
			break
		}
	}
	return wrote, err
}

func (b bundle) once(ctx context.Context, trusted []byte) (bool, error) {
	object := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := b.client.Get(ctx, client.ObjectKey{Name: b.name}, object); apierrors.IsNotFound(err) {
		return false, fmt.Errorf("there is no MutatingWebhookConfiguration %s, so no pod gets a sidecar; the chart makes it", b.name)
	} else if err != nil {
		return false, fmt.Errorf("read MutatingWebhookConfiguration %s: %w", b.name, err)
	}
	before := object.DeepCopy()
	changed := false
	for i := range object.Webhooks {
		c := &object.Webhooks[i].ClientConfig
		if !bytes.Equal(c.CABundle, trusted) {
			c.CABundle, changed = trusted, true
		}
	}
	if !changed {
		return false, nil
	}
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := b.client.Patch(ctx, object, patch); err != nil {
		return false, fmt.Errorf("write caBundle of MutatingWebhookConfiguration %s: %w", b.name, err)
	}
	return true, nil
}
