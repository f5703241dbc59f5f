package charts

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Cluster are the objects that a template's lookup finds, by kind and name. One that is nil stands for rendering without a
// cluster, where nothing is found.
type Cluster map[string]map[string]any

// Living is a cluster in which the chart was installed before, or was not (key "").
func Living(identity string) Cluster {
	c := Cluster{"Namespace/kube-system": {"kind": "Namespace"}}
	if identity != "" {
		c["Secret/weir-identity"] = map[string]any{"data": map[string]any{"identity.key": identity}}
	}
	return c
}

// GetClientFor is Helm's way to ask.
func (c Cluster) GetClientFor(_, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return lookup{cluster: c, kind: kind}, kind != "Namespace" && kind != "CustomResourceDefinition", nil
}

// lookup answers Get; templates use nothing else.
type lookup struct {
	dynamic.NamespaceableResourceInterface
	cluster Cluster
	kind    string
}

func (l lookup) Namespace(string) dynamic.ResourceInterface { return l }

func (l lookup) Get(_ context.Context, name string, _ metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	if len(sub) > 0 {
		return nil, errors.New("no subresources here")
	}
	object, ok := l.cluster[l.kind+"/"+name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: l.kind}, name)
	}
	return &unstructured.Unstructured{Object: object}, nil
}
