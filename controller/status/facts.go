package status

import (
	"slices"
	"strings"

	"github.com/weirproxy/weir/api/v1alpha1"
	"github.com/weirproxy/weir/controller/fleet"
	"github.com/weirproxy/weir/controller/publish"
)

// Facts are all that a status is made of. The order of Missing and Pods means nothing.
type Facts struct {
	// Generation is metadata.generation.
	Generation int64
	Spec       *v1alpha1.QuotaPolicySpec
	// Invalid is what is wrong with the spec, one line each; "": it is valid.
	Invalid string
	// Missing says of each target that is not there why, in words.
	Missing []string
	// Published is what the topic has of the policy.
	Published publish.Published
	// NotPublished is why the topic lacks this generation although it is valid; "": it has it.
	NotPublished string
	// Pods are those of the targets. One given twice, for two targets, is one.
	Pods []Pod
	// Deaf is why sidecars cannot be heard now, "" where they can: their silence then tells nothing.
	Deaf string
}

// Pod is one pod of the policy's targets.
type Pod struct {
	// Name is for people: of another namespace than the policy's, namespace/name.
	Name string
	// Targets are those of the policy's targets that it belongs to, canonical names.
	Targets []string
	// Sidecar: the pod has one.
	Sidecar bool
	// Waiting: none of its containers has started yet, so it gets no requests.
	Waiting bool
	// Leaving: it is being deleted, or has ended.
	Leaving bool
	// Down: its sidecar is known not to run.
	Down bool
	// Report is what its sidecar says of the policy; nil: nothing.
	Report *fleet.Report
}

// published reports whether the topic's newest record is this generation's, as it is to be.
func (f *Facts) published() bool {
	return f.Invalid == "" && f.NotPublished == "" && f.Published.Known && f.Published.Generation == f.Generation
}

// counts reports whether a pod is one of those whose requests the policy is about: it has started, and is not
// going. A sidecar that reports runs, whatever the kubelet has told yet.
func (p *Pod) counts() bool {
	if p.Leaving {
		return false
	}
	return !p.Waiting || p.fresh()
}

// fresh reports whether the present run of the pod's sidecar was heard within 30 s.
func (p *Pod) fresh() bool { return p.Report != nil && !p.Report.Stale && !p.Report.Former }

// counted are the pods that count, each once, by name.
func (f *Facts) counted() []Pod {
	sorted := slices.Clone(f.Pods)
	slices.SortStableFunc(sorted, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	var out []Pod
	for _, p := range sorted {
		if !p.counts() {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].Name == p.Name {
			out[last].Targets = slices.Concat(out[last].Targets, p.Targets)
			continue
		}
		out = append(out, p)
	}
	return out
}
