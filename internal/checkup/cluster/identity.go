package cluster

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/checkup"
)

// identity is the check kubernetes.identity: everybody has one key. Keys are told by their fingerprints alone.
func (c *Checks) identity(ctx context.Context) []checkup.Finding {
	own, err := object[corev1.Secret](ctx, c.kubernetes, secrets(), c.cfg.Namespace, c.cfg.IdentitySecret)
	if err != nil && !apierrors.IsNotFound(err) {
		return cannot("get", secrets(), c.cfg.Namespace, err)
	}
	asking, err := c.labelled(ctx)
	if err != nil {
		return cannot("list", namespaces(), "", err)
	}
	copies := map[string]*corev1.Secret{}
	for _, namespace := range asking {
		s, err := object[corev1.Secret](ctx, c.kubernetes, secrets(), namespace, c.cfg.IdentitySecret)
		if err != nil && !apierrors.IsNotFound(err) {
			return cannot("get", secrets(), namespace, err)
		}
		copies[namespace] = s
	}
	installed, known := c.cfg.Fingerprint(ctx)
	if !known {
		installed = 0
	}
	return judgeIdentity(c.cfg.IdentitySecret, own, copies, installed)
}

// judgeIdentity: own and copies are nil where there is none; installed is the fingerprint of the installation's record, 0
// where it is not known.
func judgeIdentity(name string, own *corev1.Secret, copies map[string]*corev1.Secret, installed uint32) []checkup.Finding {
	want := fingerprintOf(own)
	if want == 0 {
		return []checkup.Finding{checkup.Fail("helm upgrade makes it; if the release has another name for it, name it: --identity-secret", "there is no Secret %s with an identity key of %d bytes in the installation's namespace", name, wirev1.KeySize)}
	}
	var out []checkup.Finding
	if installed != 0 && installed != want {
		out = append(out, checkup.Fail("put the installation's first key back into the Secret, or begin a new installation with topics of its own",
			"Secret %s has the key with fingerprint %08x, the installation in Kafka %08x", name, want, installed))
	}
	var missing, others []string
	for _, namespace := range slices.Sorted(maps.Keys(copies)) {
		switch fingerprintOf(copies[namespace]) {
		case want:
		case 0:
			missing = append(missing, namespace)
		default:
			others = append(others, namespace)
		}
	}
	if len(missing) > 0 {
		out = append(out, checkup.Fail("the leading controller copies it; its log says why not", "no copy of Secret %s in %s: pods with a sidecar cannot start there", name, names(missing)))
	}
	if len(others) > 0 {
		out = append(out, checkup.Fail("delete the copy: the controller makes it anew; then restart the pods", "another key than the installation's in the copy of Secret %s in %s", name, names(others)))
	}
	return checkup.OrOkay(out, "Secret %s has the key with fingerprint %08x, and so %s", name, want, checkup.Many(len(copies), "copy"))
}

// fingerprintOf is that of the one identity key in a Secret, 0 where there is none.
func fingerprintOf(s *corev1.Secret) uint32 {
	if s == nil {
		return 0
	}
	for _, key := range slices.Sorted(maps.Keys(s.Data)) {
		if keys, err := wirev1.NewKeys(s.Data[key]); err == nil {
			return keys.Fingerprint()
		}
	}
	return 0
}
