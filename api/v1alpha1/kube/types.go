package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// QuotaPolicy holds the quotas of one or more targets of its namespace. A request to a target passes
// if every enforced rate of every limit that applies to it passes; a refused request charges nothing.
// Several policies may name one target: the limits of all of them apply.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=quotapolicies,singular=quotapolicy,shortName=qpol,categories=weir
// +kubebuilder:metadata:labels="gateway.networking.k8s.io/policy=Direct"
// +kubebuilder:metadata:annotations="helm.sh/resource-policy=keep"
// +kubebuilder:printcolumn:name="Targets",type=string,JSONPath=`.status.targets`
// +kubebuilder:printcolumn:name="Limits",type=string,JSONPath=`.status.limits`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].reason`
// +kubebuilder:printcolumn:name="Programmed",type=string,JSONPath=`.status.conditions[?(@.type=="Programmed")].reason`
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.pods.ratio`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type QuotaPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says whose requests are counted, who is calling, and what they may use.
	Spec v1alpha1.QuotaPolicySpec `json:"spec"`
	// Status says whether the policy is valid and where it is in force. The controller writes it.
	Status QuotaPolicyStatus `json:"status,omitempty"`
}

// QuotaPolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type QuotaPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []QuotaPolicy `json:"items"`
}

// Document returns the policy as a document: what internal/policy validates, compiles and publishes.
// It shares memory with p.
func (p *QuotaPolicy) Document() *v1alpha1.QuotaPolicy {
	return &v1alpha1.QuotaPolicy{
		APIVersion: v1alpha1.APIVersion,
		Kind:       v1alpha1.Kind,
		Metadata: v1alpha1.Metadata{
			Name: p.Name, Namespace: p.Namespace, Labels: p.Labels, Annotations: p.Annotations,
		},
		Spec: p.Spec,
	}
}
