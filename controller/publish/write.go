package publish

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	wirev1 "github.com/weirproxy/weir/api/wire/v1"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/policy"
	"github.com/weirproxy/weir/internal/policytopic"
)

// Publish sees to it that the topic holds a policy, and returns what it has of it then. It writes only
// where the newest record is another. After an error, what the topic has is as Lookup says, and the record
// may be there all the same: publishing again writes it once more only if it is not.
func (t *Topic) Publish(ctx context.Context, d Desired) (Published, error) {
	r, err := policytopic.NewRecord(policytopic.Source{
		Origin: policy.OriginKube, Document: d.Document, Generation: d.Generation, Targets: resolved(d.Targets),
	}, t.cfg.Keys)
	if err != nil {
		return Published{}, err
	}
	err = t.write(ctx, r, "policy published")
	return t.Lookup(nameOf(r.Key)), err
}

// Delete ends a policy: it writes a tombstone where the topic has a record.
func (t *Topic) Delete(ctx context.Context, n types.NamespacedName) error {
	return t.write(ctx, policytopic.Record{Key: kubeKey(n)}, "policy deleted from the topic")
}

func (t *Topic) write(ctx context.Context, r policytopic.Record, what string) error {
	if done, err := t.settled(r); done || err != nil {
		return err
	}
	if err := readable(r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	if err := t.await(ctx, r); err != nil {
		return err
	}
	defer func() { <-t.turn }()
	if done, err := t.settled(r); done || err != nil { // while it waited
		return err
	}
	writer, book, err := t.mayWrite(ctx, r)
	if err != nil {
		return err
	}
	version, err := policytopic.Publish(ctx, writer, t.cfg.Name, r)
	if err != nil {
		return t.steady(err)
	}
	t.cfg.Log.Info(what, zap.String(log.Policy, r.Key.String()), zap.Int64(log.PolicyVer, version))
	return t.wrote(book, r, version)
}

// settled reports whether the topic's newest record of r's key is r, so that nothing is to be written; an error
// where the topic is not known, or r must not be written.
func (t *Topic) settled(r policytopic.Record) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.foreign(); err != nil {
		return false, err
	}
	if !t.read {
		return false, fmt.Errorf("%w: %s", ErrNotReady, t.waiting())
	}
	if t.book.holds(r) {
		return true, nil
	}
	return false, t.book.fits(r)
}

// await takes the turn to write.
func (t *Topic) await(ctx context.Context, r policytopic.Record) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return t.steady(late(ctx, r))
	}
}

// readable refuses what no reader would take into force.
func readable(r policytopic.Record) error {
	if r.Value == nil {
		return nil
	}
	var m wirev1.PolicyMessage
	if err := proto.Unmarshal(r.Value, &m); err != nil {
		return fmt.Errorf("policy %s: %w", r.Key, err)
	}
	_, err := policy.Decode(r.Key, 0, m.GetPolicy())
	return err
}

// resolved puts targets and their labels in order, so that equal ones give equal records.
func resolved(targets []policy.Target) []*wirev1.ResolvedTarget {
	var out []*wirev1.ResolvedTarget
	for _, t := range targets {
		if len(t.Selector) == 0 {
			continue
		}
		r := &wirev1.ResolvedTarget{Target: t.Name}
		for _, k := range slices.Sorted(maps.Keys(t.Selector)) {
			r.Selector = append(r.Selector, &wirev1.Label{Key: k, Value: t.Selector[k]})
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *wirev1.ResolvedTarget) int { return strings.Compare(a.GetTarget(), b.GetTarget()) })
	return out
}
