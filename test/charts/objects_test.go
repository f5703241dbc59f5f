package charts

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// objects of a set, by kind and name.
func objects(t *testing.T, name string) map[string]*unstructured.Unstructured {
	t.Helper()
	list, err := render(t, name).Objects()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]*unstructured.Unstructured)
	for _, o := range list {
		id := o.GetKind() + "/" + o.GetName()
		if ns := o.GetNamespace(); ns != "" && ns != "weir-system" {
			id = ns + "/" + id
		}
		if out[id] != nil {
			t.Errorf("%s is there twice", id)
		}
		out[id] = o
	}
	return out
}

// into reads an object as its Kubernetes type.
func into[T any](t *testing.T, o *unstructured.Unstructured) *T {
	t.Helper()
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, out, true); err != nil {
		t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return out
}

// pods are the templates of all that makes pods, and pods, by kind and name.
func pods(t *testing.T, all map[string]*unstructured.Unstructured) map[string]corev1.PodTemplateSpec {
	t.Helper()
	out := make(map[string]corev1.PodTemplateSpec)
	for id, o := range all {
		switch o.GetKind() {
		case "StatefulSet":
			out[id] = into[appsv1.StatefulSet](t, o).Spec.Template
		case "Deployment":
			out[id] = into[appsv1.Deployment](t, o).Spec.Template
		case "Job":
			out[id] = into[batchv1.Job](t, o).Spec.Template
		case "Pod":
			p := into[corev1.Pod](t, o)
			out[id] = corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}
		}
	}
	return out
}

// eachSet runs f with the objects of each set of values.
func eachSet(t *testing.T, f func(t *testing.T, all map[string]*unstructured.Unstructured)) {
	for name := range sets {
		t.Run(name, func(t *testing.T) { f(t, objects(t, name)) })
	}
}
