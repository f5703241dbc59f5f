package inject

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Engine injects by one installation's settings.
type Engine struct{ settings Settings }

// New makes an engine; it fails with all that is wrong with the settings.
func New(s Settings) (*Engine, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("the injector's settings are invalid:\n%w", err)
	}
	return &Engine{s}, nil
}

// Subject is what is known of a pod beside its template.
type Subject struct {
	// Namespace is the pod's; empty: not known, as in a manifest that names none.
	Namespace string
	// NamespaceLabel is the value of Label on the namespace.
	NamespaceLabel string
	// OwnerKind and OwnerName are the workload's, as OwnerOf finds it for a pod. Empty: it has none.
	OwnerKind, OwnerName string
	// Services are those known, to say in the report which select the pod. The sidecar itself goes by the
	// selectors that policies are published with, so one that is not known here counts all the same. Of an
	// admitted pod none is named: whoever reaches the webhook would read another's Services in its answers.
	Services []Service
	// Admitted says that the template is a new pod on its way through kube-apiserver, where others may have seen
	// the sidecar already: resources that they gave it and the injector does not set, such as a LimitRange's
	// defaults, stay.
	Admitted bool
}

// Service is what the injector knows of one.
type Service struct {
	Namespace, Name string
	Selector        map[string]string
}

// Action is what was done to a template.
type Action string

// The actions.
const (
	Injected  Action = "injected"
	Updated   Action = "updated" // it had a sidecar, which differed
	Unchanged Action = "unchanged"
	Skipped   Action = "skipped"
	Removed   Action = "removed"
)

// Changed reports whether the template differs from what it was.
func (a Action) Changed() bool { return a == Injected || a == Updated || a == Removed }

// Outcome says what was done and why, to a person.
type Outcome struct {
	Action Action
	Reason string
	Notes  []string
}

// Inject puts the sidecar into template, an object with metadata and spec such as a pod, in place. After
// an error the template is as it was.
func (e *Engine) Inject(template map[string]any, s Subject) (Outcome, error) {
	pod, err := viewOf(template)
	if err != nil {
		return Outcome{}, err
	}
	was := at(template, "metadata", "annotations")[AnnotationRecord] != nil
	if why := e.skips(pod, s); why != "" {
		out := Outcome{Action: Skipped, Reason: why}
		if was {
			out.Notes = []string{"it carries a sidecar from before; weir uninject removes it"}
		}
		return out, nil
	}
	c, err := e.choose(pod, s)
	if err != nil {
		return Outcome{}, err
	}
	if was && s.Admitted {
		c.fillResources(pod)
	}
	next, err := clone(template)
	if err != nil {
		return Outcome{}, err
	}
	if err := e.apply(next, pod, &c); err != nil {
		return Outcome{}, err
	}
	out := Outcome{Action: Injected, Reason: e.says(c, pod, s), Notes: c.notes}
	if was {
		out.Action = Updated
	}
	if same(template, next) {
		out.Action = Unchanged
	}
	replace(template, next)
	return out, nil
}

func clone(template object) (object, error) { return treeOf(template) }

func replace(template, next object) {
	clear(template)
	for k, v := range next {
		template[k] = v
	}
}

// skips is why a pod gets no sidecar; "" where it does.
func (e *Engine) skips(pod *corev1.PodTemplateSpec, s Subject) string {
	own, asked := pod.Labels[Label]
	switch {
	case asked && own == Disabled:
		return "its label " + Label + " is " + Disabled
	case asked && own != Enabled:
		return fmt.Sprintf("its label %s is %q; write %s or %s", Label, own, Enabled, Disabled)
	case s.NamespaceLabel == Disabled: // and no Secret is copied there, which the sidecar would wait for
		return "its namespace's label " + Label + " is " + Disabled
	case !asked && s.NamespaceLabel != Enabled:
		return fmt.Sprintf("neither it nor its namespace has label %s: %s", Label, Enabled)
	case pod.Spec.HostNetwork:
		return "it is on the host's network, where the sidecar's ports would be the node's; run weir-sidecar by a DaemonSet of your own"
	case pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows, pod.Spec.NodeSelector[corev1.LabelOSStable] == string(corev1.Windows):
		return "it is for Windows, for which there is no sidecar"
	case pod.Annotations[annotationMirror] != "":
		return "it is a static pod's mirror, which nobody can change"
	case len(pod.Spec.Containers) == 0:
		return "it has no containers"
	case e.settings.Mode == Plain && pod.Spec.RestartPolicy != "" && pod.Spec.RestartPolicy != corev1.RestartPolicyAlways:
		return "it is to complete, and a plain container would keep it from that; use mode " + Native
	}
	return ""
}

// says is the report's reason.
func (e *Engine) says(c choices, pod *corev1.PodTemplateSpec, s Subject) string {
	kind := "a native sidecar"
	if e.settings.Mode == Plain {
		kind = "a plain container"
	}
	return kind + ", listens on " + c.listen + ", counts for " + strings.Join(c.countsFor(pod, s), " and ")
}

func (c choices) countsFor(pod *corev1.PodTemplateSpec, s Subject) (names []string) {
	if len(c.targets) > 0 {
		for _, t := range c.targets {
			names = append(names, strings.TrimPrefix(t, reference(envNamespace)+"/"))
		}
		return names
	}
	if c.ownerKind != "" {
		names = append(names, c.ownerKind+"/"+c.ownerName)
	}
	if s.Admitted && len(c.labels) > 0 {
		return append(names, "the Services that select it")
	}
	for _, service := range s.Services {
		if service.Namespace == s.Namespace && selects(service.Selector, pod.Labels) {
			names = append(names, "Service/"+service.Name)
		}
	}
	if len(names) == 0 {
		names = []string{"the Services that select it"}
	}
	return names
}

func selects(selector, labels map[string]string) bool {
	for k, want := range selector {
		if got, ok := labels[k]; !ok || got != want {
			return false
		}
	}
	return len(selector) > 0
}

// record is what the injector added that no name tells apart from the pod's own, in AnnotationRecord.
type record struct {
	Group            int64  `json:"supplementalGroup,omitempty"`
	DefaultContainer string `json:"defaultContainer,omitempty"`
	// Pod is what the resources of the pod as a whole were raised by.
	Pod *corev1.ResourceRequirements `json:"podResources,omitempty"`
}

// recordOf is a template's record; whoever edits it loses what an uninject would have removed.
func recordOf(template object) (r record, injected bool) {
	text := textAt(at(template, "metadata", "annotations"), AnnotationRecord)
	if text == "" {
		return record{}, false
	}
	if json.Unmarshal([]byte(text), &r) != nil {
		r = record{}
	}
	return r, true
}

func (r record) store(template object) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	within(within(template, "metadata"), "annotations")[AnnotationRecord] = string(data)
	return nil
}
