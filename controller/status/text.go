package status

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weirproxy/weir/api/v1alpha1"
)

const (
	longestMessage = 4096 // bytes; a condition may have 32,768 characters
	longestColumn  = 4096 // bytes, of Targets and Limits
	fewNames       = 3    // pods that a message names of each cause
)

func targetsText(s *v1alpha1.QuotaPolicySpec) string {
	texts := make([]string, 0, len(s.TargetRefs))
	for _, t := range s.TargetRefs {
		texts = append(texts, t.Kind+"/"+t.Name)
	}
	return clip(strings.Join(texts, ","), longestColumn)
}

func limitsText(s *v1alpha1.QuotaPolicySpec) string {
	texts := make([]string, 0, len(s.Limits))
	for i := range s.Limits {
		texts = append(texts, s.Limits[i].Name)
	}
	return clip(strings.Join(texts, ","), longestColumn)
}

// clip keeps a text within bytes, whole characters.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const more = "…"
	s = s[:most-len(more)]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + more
}

func (f *Facts) missing() string {
	text := strings.Join(slices.Sorted(slices.Values(f.Missing)), "; ")
	if len(f.Missing) < len(f.Spec.TargetRefs) {
		return text + "; the policy holds for its other targets"
	}
	return text + "; the policy holds once they are there"
}

func (f *Facts) conflict() string {
	var others []string
	for _, k := range f.Published.Others {
		others = append(others, k.String())
	}
	return fmt.Sprintf("%s in the policy topic: a policy of this name from elsewhere, which nobody goes by while this one is there; delete one of them",
		strings.Join(others, " and "))
}

// progress says how far the generation has come, and what keeps it.
func (f *Facts) progress(v *picture) string {
	var parts []string
	switch {
	case f.Invalid != "":
		parts = append(parts, fmt.Sprintf("generation %d is invalid", f.Generation), f.stays(v))
	case f.NotPublished != "":
		parts = append(parts, fmt.Sprintf("generation %d cannot be published: %s", f.Generation, f.NotPublished), f.stays(v))
	case !f.published():
		parts = append(parts, fmt.Sprintf("generation %d is not published yet", f.Generation), f.stays(v))
	case v.total == 0:
		parts = append(parts, "no pod of the targets runs")
	default:
		parts = append(parts, f.reached(v))
	}
	if n := len(v.degraded); n > 0 {
		parts = append(parts, fmt.Sprintf("degraded in %s, perhaps to the pod's own share or the failure mode (the sidecar's /readyz says why): %s",
			of(n, v.enforcing()), list(v.degraded)))
	}
	parts = append(parts, v.reasons(f.published())...)
	if f.Deaf != "" && v.hidden() > 0 {
		parts = append(parts, "sidecars cannot be heard now: "+f.Deaf)
	}
	return strings.Join(parts, "; ")
}

// stays says what is in force instead of a generation that is not published.
func (f *Facts) stays(v *picture) string {
	switch {
	case f.Published.Unread:
		return "what is in force is not known"
	case !f.Published.Known:
		return "nothing of this policy is in force"
	case f.Published.Generation == 0:
		return fmt.Sprintf("what was published before stays in force, in %s", of(v.kept, v.total))
	}
	return fmt.Sprintf("generation %d stays in force, in %s", f.Published.Generation, of(v.kept, v.total))
}

func (f *Facts) reached(v *picture) string {
	n := v.enforcing()
	if n == v.total {
		return fmt.Sprintf("generation %d is enforced in all of %s", f.Generation, pods(v.total))
	}
	return fmt.Sprintf("generation %d is enforced in %s", f.Generation, of(n, v.total))
}

func of(n, total int) string { return fmt.Sprintf("%d of %s", n, pods(total)) }

func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return strconv.Itoa(n) + " pods"
}

// reasons are the causes with the pods that they hold for, without ages or counts that change by themselves. Where
// the generation is not published, that no pod has it needs no saying.
func (v *picture) reasons(published bool) []string {
	var out []string
	for c := noSidecar; c < causes; c++ {
		if len(v.names[c]) > 0 && (published || c != behind) {
			out = append(out, fmt.Sprintf("%s: %s", list(v.names[c]), v.text(c)))
		}
	}
	return out
}

// list names the first few.
func list(names []string) string {
	text := strings.Join(first(names, fewNames), ", ")
	if more := len(names) - fewNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (v *picture) text(c cause) string {
	switch c {
	case noSidecar:
		return "no sidecar, nothing is counted (label the namespace weirproxy.dev/inject=enabled and restart the pod)"
	case down:
		return "the sidecar does not run"
	case unheard:
		return "the sidecar has not reported yet"
	case silent:
		return "silent for more than 30 s"
	case foreign:
		return "the sidecar has another identity key (restart the pod once the namespace's Secret is right)"
	case refused:
		return "the sidecar refuses the new version: " + clip(v.why, 300)
	case elsewhere:
		return "the sidecar counts for other targets (annotation weirproxy.dev/target, labels or owner when it was injected)"
	default:
		return "an older version is in force"
	}
}
