package inject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// object is a decoded JSON object. Its numbers are json.Number, float64 or int64.
type object = map[string]any

// Bounds of a pod. In Kubernetes' types an empty container takes a thousand bytes, and in JSON three.
const (
	maxContainers = 128
	maxVolumes    = 1024
)

// bounded refuses a pod that would take much memory in Kubernetes' types.
func bounded(template object) error {
	spec := at(template, "spec")
	n := 0
	for _, key := range containerLists() {
		n += len(listAt(spec, key))
	}
	if n > maxContainers {
		return fmt.Errorf("the pod has %d containers, and the injector takes %d", n, maxContainers)
	}
	if n := len(listAt(spec, "volumes")); n > maxVolumes {
		return fmt.Errorf("the pod has %d volumes, and the injector takes %d", n, maxVolumes)
	}
	return nil
}

func containerLists() []string {
	return []string{"initContainers", "containers", "ephemeralContainers"}
}

// viewOf is the template in Kubernetes' types, to read from; an error says which field has the wrong type.
func viewOf(template object) (*corev1.PodTemplateSpec, error) {
	if err := bounded(template); err != nil {
		return nil, err
	}
	data, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encode the pod: %w", err)
	}
	v := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("this is no pod: %w; see kubectl explain pod.spec", err)
	}
	return v, nil
}

// treeOf is v as a decoded JSON object.
func treeOf(v any) (object, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return decodeObject(data)
}

// decodeObject decodes one JSON object and keeps its numbers as they are written.
func decodeObject(data []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var o object
	err := dec.Decode(&o)
	return o, err
}

// within is the object at key, made where there is none.
func within(o object, key string) object {
	child, ok := o[key].(object)
	if !ok {
		child = object{}
		o[key] = child
	}
	return child
}

// at is the object at the path, nil where there is none.
func at(o object, path ...string) object {
	for _, key := range path {
		o, _ = o[key].(object) // nil maps are read as empty
	}
	return o
}

func listAt(o object, key string) []any { l, _ := o[key].([]any); return l }

func textAt(o object, key string) string { s, _ := o[key].(string); return s }

// setList puts a list in place; an empty one is none.
func setList(o object, key string, l []any) {
	if len(l) == 0 {
		delete(o, key)
		return
	}
	o[key] = l
}

// prune removes the objects of the path that are empty, from the innermost out.
func prune(o object, path ...string) {
	for i := len(path); i > 0; i-- {
		parent := at(o, path[:i-1]...)
		if child, ok := parent[path[i-1]].(object); !ok || len(child) > 0 {
			return
		}
		delete(parent, path[i-1])
	}
}

func nameOf(item any) string { o, _ := item.(object); return textAt(o, "name") }

func indexOf(l []any, name string) int {
	return slices.IndexFunc(l, func(item any) bool { return nameOf(item) == name })
}

// setNamed replaces the item of that name where it is, or inserts it at place. Others keep their order.
func setNamed(l []any, item object, place int) []any {
	name := textAt(item, "name")
	if i := indexOf(l, name); i >= 0 {
		rest := without(l[i+1:], name) // a name is there once
		return append(append(slices.Clone(l[:i]), item), rest...)
	}
	return slices.Insert(slices.Clone(l), place, any(item))
}

// without is the list without the items of these names.
func without(l []any, names ...string) []any {
	return slices.DeleteFunc(slices.Clone(l), func(item any) bool { return slices.Contains(names, nameOf(item)) })
}

// same reports whether two trees are the same JSON.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
