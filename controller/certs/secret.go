package certs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/internal/log"
)

// +kubebuilder:rbac:groups="",resources=secrets,namespace=weir-system,verbs=create
// +kubebuilder:rbac:groups="",resources=secrets,namespace=weir-system,resourceNames=weir-webhook-tls,verbs=get;watch;update

// maxTries is how often a write that another replica was faster with is tried again.
const maxTries = 5

// secret is the source of mode SelfManaged.
type secret struct {
	client client.Client
	key    client.ObjectKey
	names  []string // of the webhook's Service
	log    *zap.Logger
}

// load reads the Secret, and renews what is due there.
func (s *secret) load(ctx context.Context, now time.Time) (material, error) {
	var err error
	for range maxTries {
		var m material
		if m, err = s.once(ctx, now); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return m, err
		}
	}
	return material{}, fmt.Errorf("others write Secret %s without end: %w", s.key, err)
}

func (s *secret) once(ctx context.Context, now time.Time) (material, error) {
	object := &corev1.Secret{}
	err := s.client.Get(ctx, s.key, object)
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return material{}, fmt.Errorf("read Secret %s: %w", s.key, err)
	}
	have, broken := decode(object.Data)
	next, why, err := have.renewed(now, s.names)
	if err != nil {
		return material{}, err
	}
	if why != "" {
		if broken != nil && len(object.Data) > 0 {
			s.log.Warn("the Secret of the webhook's certificate is not as it was written", zap.String(log.Object, "Secret "+s.key.String()), zap.Error(broken))
		}
		if err := s.write(ctx, object, absent, next); err != nil {
			return material{}, err
		}
		s.log.Info("the webhook has a new certificate", zap.String(log.Object, "Secret "+s.key.String()), zap.String(log.Reason, why),
			zap.Time(log.Until, next.serving.cert.NotAfter))
	}
	return material{pair: next.pair(), trusted: encodeCerts(next.authorities...), renewed: why != ""}, nil
}

// write creates or updates the Secret; whoever was faster is seen as a conflict.
func (s *secret) write(ctx context.Context, object *corev1.Secret, absent bool, next state) error {
	data, err := next.encode()
	if err != nil {
		return err
	}
	if absent {
		err = s.client.Create(ctx, &corev1.Secret{
			// No label of who manages it: an upgrade of the chart takes it up as its own.
			ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name, Labels: map[string]string{"app.kubernetes.io/name": "weir"}},
			Type:       corev1.SecretTypeOpaque, Data: data, // as the chart has it: a type cannot be changed
		})
	} else {
		object.Data = data
		err = s.client.Update(ctx, object)
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", s.key, err)
	}
	return nil
}

// say is what is wrong with a source, in words for a person who may not know of RBAC.
func say(err error) string {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && apierrors.IsForbidden(err) {
		return err.Error() + "; the chart's Role gives this right"
	}
	return err.Error()
}
