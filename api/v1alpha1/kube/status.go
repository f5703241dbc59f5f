package kube

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// QuotaPolicyStatus says whether a policy is valid and where it is in force.
type QuotaPolicyStatus struct {
	// ObservedGeneration is the metadata.generation that this status speaks of.
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Accepted (reasons Accepted, Invalid, TargetNotFound, Conflicted) and Programmed
	// (Programmed, PartiallyProgrammed, Pending), each with the generation that it speaks of.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Targets are the targets for people, such as Service/orders, separated by commas.
	// +kubebuilder:validation:MaxLength=4096
	Targets string `json:"targets,omitempty"`
	// Limits are the names of the limits for people, separated by commas.
	// +kubebuilder:validation:MaxLength=4096
	Limits string `json:"limits,omitempty"`
	// Pods says how many of the targets' pods enforce the policy.
	Pods *PodsStatus `json:"pods,omitempty"`
}

// PodsStatus counts the pods of a policy's targets, those without a sidecar included.
type PodsStatus struct {
	// Enforcing is how many pods enforce observedGeneration, as their sidecars report.
	// +kubebuilder:validation:Minimum=0
	Enforcing int32 `json:"enforcing"`
	// Total is how many pods the targets select.
	// +kubebuilder:validation:Minimum=0
	Total int32 `json:"total"`
	// Ratio is enforcing/total for people, such as 3/3.
	// +kubebuilder:validation:MaxLength=32
	Ratio string `json:"ratio,omitempty"`
	// OldestGeneration is the oldest metadata.generation that is still in force in some pod; absent
	// where no pod enforces the policy.
	// +kubebuilder:validation:Minimum=0
	OldestGeneration int64 `json:"oldestGeneration,omitempty"`
	// WithoutSidecar is how many of the pods have no sidecar: nothing of theirs is counted.
	// +kubebuilder:validation:Minimum=0
	WithoutSidecar int32 `json:"withoutSidecar,omitempty"`
	// WithoutSidecarNames names the first of them, in the order of their names.
	// +listType=set
	// +kubebuilder:validation:MaxItems=10
	WithoutSidecarNames []string `json:"withoutSidecarNames,omitempty"`
	// Lagging names the first pods, in the order of their names, whose sidecar does not enforce
	// observedGeneration yet, or has not reported for 30 s.
	// +listType=set
	// +kubebuilder:validation:MaxItems=10
	Lagging []string `json:"lagging,omitempty"`
}

// MaxNamedPods is how many pods a status names in each of its lists.
const MaxNamedPods = 10

// The types of conditions.
const (
	// ConditionAccepted says whether the policy is valid and its targets are there.
	ConditionAccepted = "Accepted"
	// ConditionProgrammed says whether every pod of the targets enforces observedGeneration.
	ConditionProgrammed = "Programmed"
)

// The reasons of Accepted.
const (
	ReasonAccepted = "Accepted"
	// ReasonInvalid: the message has every error, with the field's path. The last good generation
	// stays in force.
	ReasonInvalid = "Invalid"
	// ReasonTargetNotFound: the message names the targets that are not there. The policy is
	// published for those that are.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonConflicted: the message names what it conflicts with.
	ReasonConflicted = "Conflicted"
)

// The reasons of Programmed.
const (
	// ReasonProgrammed: every pod enforces observedGeneration.
	ReasonProgrammed = "Programmed"
	// ReasonPartiallyProgrammed: some pods do; the others lag, are cut off, or have no sidecar.
	ReasonPartiallyProgrammed = "PartiallyProgrammed"
	// ReasonPending: no pod does yet.
	ReasonPending = "Pending"
)
