package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weirproxy/weir/api/v1alpha1"
)

// GroupVersion returns weirproxy.dev/v1alpha1.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: v1alpha1.Group, Version: v1alpha1.Version}
}

// AddToScheme tells a scheme of the types here.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &QuotaPolicy{}, &QuotaPolicyList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
