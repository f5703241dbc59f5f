package inject

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// templatePath is where a kind has its pod template, within the object; a pod is one itself.
func templatePath(apiVersion, kind string) (path []string, ok bool) {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group = ""
	}
	switch group + "/" + kind {
	case "/Pod":
		return nil, true
	case "/PodTemplate":
		return []string{"template"}, true
	case "/ReplicationController", "apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "apps/ReplicaSet", "batch/Job":
		return []string{"spec", "template"}, true
	case "batch/CronJob":
		return []string{"spec", "jobTemplate", "spec", "template"}, true
	}
	return nil, false
}

// templateOf is the pod template in o.
func templateOf(o object, path []string) (object, error) {
	for i, key := range path {
		child, ok := o[key].(object)
		if !ok {
			return nil, fmt.Errorf("%s is missing or no object, so there is no pod template; see kubectl explain", strings.Join(path[:i+1], "."))
		}
		o = child
	}
	return o, nil
}

// OwnerOf is the workload that a pod, or a set of pods, belongs to, as policies name it: of a Deployment's
// ReplicaSet it is the Deployment. Empty: the object has no controller, or one that is no workload of Kubernetes'
// own, which may have the same kind and name as one that is.
func OwnerOf(meta metav1.ObjectMeta) (kind, name string) {
	owner := metav1.GetControllerOfNoCopy(&meta)
	if owner == nil {
		return "", ""
	}
	if _, builtin := templatePath(owner.APIVersion, owner.Kind); !builtin {
		return "", ""
	}
	hash := meta.Labels["pod-template-hash"]
	if deployment, ok := strings.CutSuffix(owner.Name, "-"+hash); ok && owner.Kind == "ReplicaSet" && hash != "" {
		return "Deployment", deployment
	}
	return owner.Kind, owner.Name
}

// ownerIn is the owner of the pods that a document makes: its controller, or itself.
func ownerIn(o object, kind string) (ownerKind, name string, err error) {
	meta, err := metaOf(o)
	if err != nil {
		return "", "", err
	}
	switch ownerKind, name = OwnerOf(meta); {
	case kind == "Pod", kind == "PodTemplate", ownerKind != "":
		return ownerKind, name, nil
	case meta.Name == "":
		return "", "", nil // generateName: the API server will say
	}
	return kind, meta.Name, nil
}

func metaOf(o object) (metav1.ObjectMeta, error) {
	v, err := viewOf(object{"metadata": o["metadata"]})
	if err != nil {
		return metav1.ObjectMeta{}, err
	}
	return v.ObjectMeta, nil
}

// serviceIn is the Service that o is.
func serviceIn(o object, namespace string) (Service, bool) {
	if textAt(o, "apiVersion") != "v1" || textAt(o, "kind") != "Service" {
		return Service{}, false
	}
	s := Service{Namespace: namespace, Name: textAt(at(o, "metadata"), "name"), Selector: map[string]string{}}
	for k, v := range at(o, "spec", "selector") {
		s.Selector[k], _ = v.(string)
	}
	return s, textAt(at(o, "spec"), "type") != string(corev1.ServiceTypeExternalName)
}
