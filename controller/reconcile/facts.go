package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weirproxy/weir/controller/fleet"
	"github.com/weirproxy/weir/controller/status"
)

// pods are those of a policy's targets, each once, with what its sidecar says of the policy: the pods that a
// Service selects, those of a workload, and those that name the target by annotation; of a Gateway or a route, the
// sidecars that report it.
func (r *Policies) pods(ctx context.Context, policy types.NamespacedName, targets []Target) ([]status.Pod, error) {
	g := gathering{policy: policy, fleet: r.fleet, found: map[string]*status.Pod{}}
	for _, t := range targets {
		if t.Missing != "" {
			continue
		}
		if t.Named() {
			g.naming(ctx, r.client, t.Name)
			continue
		}
		if err := g.selected(ctx, r.client, t); err != nil {
			return nil, err
		}
	}
	out := make([]status.Pod, 0, len(g.found))
	for _, name := range slices.Sorted(maps.Keys(g.found)) {
		out = append(out, *g.found[name])
	}
	return out, nil
}

// gathering is pods that are being looked for, by namespace/name.
type gathering struct {
	policy types.NamespacedName
	fleet  Fleet
	found  map[string]*status.Pod
}

func (g *gathering) selected(ctx context.Context, r client.Reader, t Target) error {
	selections := []client.ListOption{client.MatchingFields{podTargets: t.Ref.Kind + "/" + t.Ref.Name}}
	if len(t.Selector) > 0 {
		selections = append(selections, client.MatchingLabels(t.Selector))
	}
	for _, selection := range selections {
		var list corev1.PodList
		if err := r.List(ctx, &list, client.InNamespace(g.policy.Namespace), selection, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list the pods of %s: %w", t.Name, err)
		}
		for i := range list.Items {
			p := &list.Items[i]
			g.add(p.Namespace+"/"+p.Name, t.Name, func() *status.Pod { return g.known(p) })
		}
	}
	return nil
}

// known is a pod as Kubernetes tells of it.
func (g *gathering) known(p *corev1.Pod) *status.Pod {
	return &status.Pod{
		Sidecar: HasSidecar(p), Waiting: !Started(p),
		Leaving: p.DeletionTimestamp != nil || Ended(p), Down: down(p), Report: g.report(p.Namespace+"/"+p.Name, runOf(p)),
	}
}

// naming adds the sidecars that report a target. One that Kubernetes does not know, and that is silent, is gone.
func (g *gathering) naming(ctx context.Context, r client.Reader, target string) {
	for _, pod := range g.fleet.Naming(target) {
		namespace, name, _ := strings.Cut(pod, "/")
		var p corev1.Pod
		if r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &p) == nil {
			g.add(pod, target, func() *status.Pod { return g.known(&p) })
		} else if report := g.report(pod, ""); report != nil && (!report.Stale || g.fleet.Waiting() != "") {
			g.add(pod, target, func() *status.Pod { return &status.Pod{Sidecar: true, Report: report} })
		}
	}
}

func (g *gathering) add(pod, target string, what func() *status.Pod) {
	p := g.found[pod]
	if p == nil {
		p = what()
		p.Name = pod
		if name, own := strings.CutPrefix(pod, g.policy.Namespace+"/"); own {
			p.Name = name
		}
		g.found[pod] = p
	}
	if !slices.Contains(p.Targets, target) {
		p.Targets = append(p.Targets, target)
	}
}

func (g *gathering) report(pod, run string) *fleet.Report {
	if r, ok := g.fleet.Report(pod, run, g.policy); ok {
		return &r
	}
	return nil
}
