package status

import (
	"slices"
	"strconv"

	"github.com/weirproxy/weir/api/v1alpha1/kube"
)

// cause is why a pod does not enforce the policy's generation, the first that holds.
type cause int

const (
	enforces  cause = iota
	noSidecar       // nothing of the pod is counted
	down            // the sidecar does not run
	unheard         // nothing was heard of the sidecar's present run
	silent          // it has not reported for 30 s
	foreign         // another identity key
	refused         // it refuses the newest version
	elsewhere       // it charges other targets
	behind          // another version is in force
	causes
)

// judge says why a pod does not enforce f's generation.
func (f *Facts) judge(p *Pod) cause {
	switch r := p.Report; {
	case !p.Sidecar:
		return noSidecar
	case p.Down:
		return down
	case r == nil || r.Former:
		return unheard
	case r.Stale:
		return silent
	case r.Foreign:
		return foreign
	case r.Error != "" && r.Seen == f.Published.Version:
		return refused
	case !f.published() || !f.has(p):
		return behind
	case !p.charges():
		return elsewhere
	}
	return enforces
}

// has reports whether the version in force in a pod is the topic's newest. Where a sidecar says the generation
// too, it must agree: offsets of a topic that was made anew may meet those of the last one.
func (f *Facts) has(p *Pod) bool {
	r := p.Report
	return f.Published.Known && r.Version == f.Published.Version &&
		(r.Generation == 0 || r.Generation == f.Published.Generation)
}

// charges reports whether the sidecar charges requests to all the targets that its pod belongs to.
func (p *Pod) charges() bool {
	for _, t := range p.Targets {
		if !slices.Contains(p.Report.Targets, t) {
			return false
		}
	}
	return true
}

// picture is the pods of a policy by what they do, names sorted.
type picture struct {
	total int
	names [causes][]string
	why   string // why the first pod refuses the newest version
	// degraded are those that enforce it as far as they can by themselves.
	degraded []string
	// kept is how many pods that were heard have the topic's newest version in force, whichever generation it is of.
	kept   int
	oldest int64
}

// look sorts the pods. before is the last status.
func (f *Facts) look(before *kube.QuotaPolicyStatus) picture {
	var v picture
	for _, p := range f.counted() {
		v.total++
		c := f.judge(&p)
		v.names[c] = append(v.names[c], p.Name)
		switch {
		case c == refused && v.why == "":
			v.why = p.Report.Error
		case c == enforces && p.Report.Degraded:
			v.degraded = append(v.degraded, p.Name)
		}
		if p.Sidecar && !p.Down && p.fresh() && !p.Report.Foreign && f.has(&p) {
			v.kept++
		}
		v.age(f.generationIn(&p, before))
	}
	return v
}

// age takes up that a pod has a generation in force; 0: none. -1, one that is not known, makes the oldest unknown.
func (v *picture) age(generation int64) {
	switch {
	case generation == 0 || v.oldest < 0:
	case generation < 0:
		v.oldest = -1
	case v.oldest == 0 || generation < v.oldest:
		v.oldest = generation
	}
}

// generationIn is the generation in force in a pod, as far as was heard: one that is silent keeps what it has. 0:
// none; -1: it is not known. A sidecar that is too old to say it is known by the version that it has, or by what
// the last status said of the oldest.
func (f *Facts) generationIn(p *Pod, before *kube.QuotaPolicyStatus) int64 {
	r := p.Report
	switch {
	case !p.Sidecar || p.Down || r == nil || r.Former || r.Version < 0 || !p.charges():
		return 0
	case r.Generation > 0:
		return r.Generation
	case f.Published.Known && r.Version == f.Published.Version && f.Published.Generation > 0:
		return f.Published.Generation
	case before.Pods != nil && before.Pods.OldestGeneration > 0:
		return before.Pods.OldestGeneration
	}
	return -1
}

// enforcing is how many pods enforce the policy's generation.
func (v *picture) enforcing() int { return len(v.names[enforces]) }

// hidden is how many pods' sidecars are not heard.
func (v *picture) hidden() int { return len(v.names[unheard]) + len(v.names[silent]) }

// lagging are the pods that have a sidecar and do not enforce the generation, sorted.
func (v *picture) lagging() []string {
	out := slices.Concat(v.names[noSidecar+1:]...)
	slices.Sort(out)
	return out
}

func (v *picture) pods() *kube.PodsStatus {
	return &kube.PodsStatus{
		Enforcing: count(v.enforcing()), Total: count(v.total),
		Ratio:            strconv.Itoa(v.enforcing()) + "/" + strconv.Itoa(v.total),
		OldestGeneration: max(v.oldest, 0),
		WithoutSidecar:   count(len(v.names[noSidecar])), WithoutSidecarNames: first(v.names[noSidecar], kube.MaxNamedPods),
		Lagging: first(v.lagging(), kube.MaxNamedPods),
	}
}

func count(n int) int32 { return int32(min(n, 1<<30)) } //nolint:gosec // bounded

// first is a copy of the first few; nil for none.
func first(names []string, most int) []string {
	return append([]string(nil), names[:min(len(names), most)]...)
}
