package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/api/v1alpha1/kube"
)

// Make returns the status of a policy. before is its last one, of which the times of conditions that did not turn,
// conditions of others, and what only it still knows are kept; it is not changed. now is when a condition turns
// that does.
func Make(f Facts, before kube.QuotaPolicyStatus, now time.Time) kube.QuotaPolicyStatus {
	v := f.look(&before)
	out := kube.QuotaPolicyStatus{
		ObservedGeneration: f.Generation,
		Targets:            targetsText(f.Spec), Limits: limitsText(f.Spec),
		Pods: v.pods(),
	}
	for _, c := range []metav1.Condition{f.accepted(), f.programmed(&v)} {
		c.ObservedGeneration, c.Message = f.Generation, clip(c.Message, longestMessage)
		c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second)) // as it is written
		if last := meta.FindStatusCondition(before.Conditions, c.Type); last != nil && last.Status == c.Status {
			c.LastTransitionTime = last.LastTransitionTime
		}
		out.Conditions = append(out.Conditions, c)
	}
	out.Conditions = append(out.Conditions, ofOthers(before.Conditions)...)
	return out
}

// othersKept is how many conditions of others a status has room for beside its own two.
const othersKept = 6

// ofOthers are the conditions that others put into a status.
func ofOthers(conditions []metav1.Condition) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range conditions {
		if c.Type != kube.ConditionAccepted && c.Type != kube.ConditionProgrammed && len(out) < othersKept {
			out = append(out, c)
		}
	}
	return out
}

// accepted says whether the spec is valid and its targets are there. A policy of the same name by a file or by
// `weir apply` is said, and takes nothing from this one: kube goes before them.
func (f *Facts) accepted() metav1.Condition {
	c := metav1.Condition{Type: kube.ConditionAccepted, Status: metav1.ConditionFalse}
	switch {
	case f.Invalid != "":
		c.Reason, c.Message = kube.ReasonInvalid, f.Invalid
	case len(f.Missing) > 0:
		c.Reason, c.Message = kube.ReasonTargetNotFound, f.missing()
	case len(f.Published.Others) > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, kube.ReasonConflicted, f.conflict()
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, kube.ReasonAccepted, "the policy is valid, and its targets are there"
	}
	return c
}

// programmed says whether every pod enforces the generation. Without a pod nothing does, so it is not claimed.
func (f *Facts) programmed(v *picture) metav1.Condition {
	c := metav1.Condition{Type: kube.ConditionProgrammed, Status: metav1.ConditionFalse, Message: f.progress(v)}
	switch n := v.enforcing(); {
	case n > 0 && n == v.total:
		c.Status, c.Reason = metav1.ConditionTrue, kube.ReasonProgrammed
	case n > 0:
		c.Reason = kube.ReasonPartiallyProgrammed
	default:
		c.Reason = kube.ReasonPending
	}
	if c.Status == metav1.ConditionFalse && f.unknown(v) {
		c.Status = metav1.ConditionUnknown
	}
	return c
}

// unknown reports whether every pod that is not known to enforce the generation may do so all the same: it
// cannot be heard, or what the topic has is not known yet.
func (f *Facts) unknown(v *picture) bool {
	if f.Invalid != "" {
		return false
	}
	may := v.enforcing()
	if f.Deaf != "" {
		may += v.hidden()
	}
	if f.Published.Unread {
		may += len(v.names[behind])
	}
	return may == v.total && (f.Published.Unread || v.total > 0)
}
