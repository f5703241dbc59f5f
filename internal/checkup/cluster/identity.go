package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/checkup"
	"github.com/weirproxy/weir/internal/inject"
)

// identity is the check kubernetes.identity: everybody has one key. Keys are told by their fingerprints alone.
func (c *Checks) identity(ctx context.Context) []checkup.Finding {
	own, err := object[corev1.Secret](ctx, c.kubernetes, secrets(), c.cfg.Namespace, c.cfg.IdentitySecret)
	if err != nil && !apierrors.IsNotFound(err) {
		return cannot("get", secrets(), c.cfg.Namespace, err)
	}
	want := fingerprintOf(own)
	if want == 0 {
		return []checkup.Finding{checkup.Fail("helm upgrade makes it; if the release has another name for it, name it: --identity-secret",
			"there is no Secret %s with an identity key of %d bytes in the installation's namespace", c.cfg.IdentitySecret, wirev1.KeySize)}
	}
	out := c.judgeInstalled(ctx, want)
	a := c.asked(ctx)
	if a.err != nil && len(a.watched) == 0 {
		return append(out, cannot("list", namespaces(), "", a.err)...)
	}
	copies := c.copies(ctx, c.wantCopies(ctx))
	return checkup.OrOkay(append(out, copies.judge(c.cfg.IdentitySecret, want)...), "Secret %s has the key with fingerprint %08x, and so %s", c.cfg.IdentitySecret, want, checkup.Many(len(copies.keys), "copy"))
}

// judgeInstalled compares the Secret's key with that of the installation's record, if it is known.
func (c *Checks) judgeInstalled(ctx context.Context, want uint32) []checkup.Finding {
	installed, known := c.cfg.Fingerprint(ctx)
	if !known || installed == want {
		return nil
	}
	in, name := "kubectl -n "+c.cfg.Namespace, c.cfg.IdentitySecret
	return []checkup.Finding{checkup.Fail(in+" delete secret "+name+", then "+in+" create secret generic "+name+" --from-file=identity.key=FILE with the installation's first key, then restart the programs; or begin a new installation with topics of its own",
		"Secret %s has the key with fingerprint %08x, the installation in Kafka %08x", name, want, installed)}
}

// wantCopies are the namespaces that the controller copies Secrets to: those that ask, and those where a pod does and
// that do not refuse.
func (c *Checks) wantCopies(ctx context.Context) []string {
	a := c.asked(ctx)
	out := slices.Clone(a.enabled)
	for namespace, of := range c.everyPod(ctx).by {
		if label := a.watched[namespace]; of.own && label != inject.Enabled && label != inject.Disabled {
			out = append(out, namespace)
		}
	}
	return slices.DeleteFunc(out, func(n string) bool { return n == c.cfg.Namespace })
}

// askers is how many Secrets are asked for at a time.
const askers = 16

// copies are the fingerprints of the copies by namespace, 0 where there is none, and why others could not be read.
type copies struct {
	keys   map[string]uint32
	failed int
	where  string
	err    error
}

// copies reads them, several at a time: of 700 namespaces one after the other would take too long. It stops at the first
// one that could not be read.
func (c *Checks) copies(ctx context.Context, of []string) *copies {
	out := &copies{keys: map[string]uint32{}}
	var mu sync.Mutex
	var asking sync.WaitGroup
	next := make(chan string)
	for range askers {
		asking.Go(func() {
			for namespace := range next {
				s, err := object[corev1.Secret](ctx, c.kubernetes, secrets(), namespace, c.cfg.IdentitySecret)
				mu.Lock()
				if err != nil && !apierrors.IsNotFound(err) {
					out.fail(namespace, err)
				} else {
					out.keys[namespace] = fingerprintOf(s)
				}
				mu.Unlock()
			}
		})
	}
	for _, namespace := range of {
		mu.Lock()
		stop := out.err != nil
		mu.Unlock()
		if stop {
			break
		}
		next <- namespace
	}
	close(next)
	asking.Wait()
	out.failed = len(of) - len(out.keys)
	return out
}

func (s *copies) fail(namespace string, err error) {
	if s.err == nil {
		s.where, s.err = namespace, err
	}
}

// judge compares the copies with the key that they should be.
func (s *copies) judge(name string, want uint32) []checkup.Finding {
	var out []checkup.Finding
	var missing, others []string
	for namespace, key := range s.keys {
		switch key {
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
	if s.err != nil {
		out = append(out, cannot("get", secrets(), s.where, fmt.Errorf("%d of %d copies are not looked at: %w", s.failed, s.failed+len(s.keys), s.err))...)
	}
	return out
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
