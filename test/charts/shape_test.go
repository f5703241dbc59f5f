package charts

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common/util"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Whatever selects pods selects those of one part, and there are some.
func TestWhatSelectsPodsFindsThem(t *testing.T) {
	eachSet(t, func(t *testing.T, all map[string]*unstructured.Unstructured) {
		templates := pods(t, all)
		for id, o := range all {
			var selector *metav1.LabelSelector
			switch o.GetKind() {
			case "Service":
				selector = &metav1.LabelSelector{MatchLabels: into[corev1.Service](t, o).Spec.Selector}
			case "PodDisruptionBudget":
				selector = into[policyv1.PodDisruptionBudget](t, o).Spec.Selector
			case "NetworkPolicy":
				selector = &into[networkingv1.NetworkPolicy](t, o).Spec.PodSelector
			default:
				continue
			}
			s, err := metav1.LabelSelectorAsSelector(selector)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for pod, template := range templates {
				if s.Matches(labels.Set(template.Labels)) {
					found = append(found, pod)
				}
			}
			if len(found) != 1 {
				t.Errorf("%s selects %v", id, found)
			}
		}
	})
}

// What a pod mounts, runs as and is called by exists, where it is not the user's own.
func TestWhatPodsNameIsThere(t *testing.T) {
	eachSet(t, func(t *testing.T, all map[string]*unstructured.Unstructured) {
		for id, pod := range pods(t, all) {
			if all["ServiceAccount/"+pod.Spec.ServiceAccountName] == nil {
				t.Errorf("%s: no ServiceAccount %q", id, pod.Spec.ServiceAccountName)
			}
			for _, v := range pod.Spec.Volumes {
				if v.ConfigMap != nil && all["ConfigMap/"+v.ConfigMap.Name] == nil {
					t.Errorf("%s: no ConfigMap %q", id, v.ConfigMap.Name)
				}
			}
		}
		for id, o := range all {
			if s := o.GetKind(); s == "Service" {
				for _, p := range into[corev1.Service](t, o).Spec.Ports {
					if !hasPort(pods(t, all), p.TargetPort.StrVal) {
						t.Errorf("%s: no pod has a port %s", id, p.TargetPort.StrVal)
					}
				}
			}
		}
	})
}

func hasPort(templates map[string]corev1.PodTemplateSpec, name string) bool {
	for _, pod := range templates {
		for _, c := range pod.Spec.Containers {
			if slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name }) {
				return true
			}
		}
	}
	return false
}

// Every container is held to the least: not root, nothing to write, no rights, memory bounded, an image by name and tag.
func TestEveryContainerIsRestricted(t *testing.T) {
	eachSet(t, func(t *testing.T, all map[string]*unstructured.Unstructured) {
		for id, pod := range pods(t, all) {
			s := pod.Spec.SecurityContext
			if s == nil || !*s.RunAsNonRoot || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: pod's security context %+v", id, s)
			}
			if token := *pod.Spec.AutomountServiceAccountToken; token && strings.Contains(id, "aggregator") {
				t.Errorf("%s mounts a token that it does not need", id)
			}
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				s := c.SecurityContext
				if s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" {
					t.Errorf("%s/%s: %+v", id, c.Name, s)
				}
				if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
					t.Errorf("%s/%s: resources %+v", id, c.Name, c.Resources)
				}
				if !strings.Contains(c.Image, ":") || len(c.Command) == 0 {
					t.Errorf("%s/%s: image %q, command %v", id, c.Name, c.Image, c.Command)
				}
			}
		}
	})
}

// All objects carry the common labels and annotations, and those within a namespace name it.
func TestEveryObjectIsLabelled(t *testing.T) {
	eachSet(t, func(t *testing.T, all map[string]*unstructured.Unstructured) {
		clusterWide := []string{"ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
		for id, o := range all {
			if o.GetLabels()["app.kubernetes.io/name"] != "weir" || o.GetLabels()["app.kubernetes.io/component"] == "" {
				t.Errorf("%s has labels %v", id, o.GetLabels())
			}
			if (o.GetNamespace() == "") != slices.Contains(clusterWide, o.GetKind()) {
				t.Errorf("%s has namespace %q", id, o.GetNamespace())
			}
		}
	})
	for id, o := range objects(t, "everything") {
		if o.GetLabels()["example.com/cost-centre"] != "42" || o.GetAnnotations()["example.com/owner"] != "platform" {
			t.Errorf("%s has not what is common: %v %v", id, o.GetLabels(), o.GetAnnotations())
		}
	}
}

// The image of each program comes from the registry and tag that are set, and by digest where there is one.
func TestImagesAreWhereTheMirrorIs(t *testing.T) {
	all := objects(t, "production")
	for id, pod := range pods(t, all) {
		for _, c := range pod.Spec.Containers {
			if !strings.HasPrefix(c.Image, "registry.example/mirror/weirproxy/weir") || !strings.HasSuffix(c.Image, ":v0.1.0") {
				t.Errorf("%s: %s", id, c.Image)
			}
		}
		if len(pod.Spec.ImagePullSecrets) != 1 {
			t.Errorf("%s: pull secrets %v", id, pod.Spec.ImagePullSecrets)
		}
	}
	settings, _, _ := unstructured.NestedString(all["ConfigMap/weir-injector"].Object, "data", "settings.yaml")
	if want := "image: registry.example/mirror/weirproxy/weir-sidecar:v0.1.0@sha256:0123"; !strings.Contains(settings, want) {
		t.Errorf("%q is missing in\n%s", want, settings)
	}
}

// The number that runs stays while it is that of whoever applies the release: one that is let go would fall to 1.
func TestAnAutoscalerFindsTheNumberThatRuns(t *testing.T) {
	replicas := map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}}
	rest := map[string]any{"f:spec": map[string]any{"f:template": map[string]any{}}}
	for name, tt := range map[string]struct {
		owner map[string]any
		want  bool
	}{
		"Helm":                      {map[string]any{"manager": "helm", "operation": "Apply", "fieldsV1": replicas}, true},
		"Flux":                      {map[string]any{"manager": "helm-controller", "operation": "Apply", "fieldsV1": replicas}, true},
		"kubectl":                   {map[string]any{"manager": "kubectl-client-side-apply", "operation": "Update", "fieldsV1": replicas}, true},
		"the autoscaler":            {map[string]any{"manager": "kube-controller-manager", "operation": "Update", "subresource": "scale", "fieldsV1": replicas}, false},
		"a scaler like Helm":        {map[string]any{"manager": "helm", "operation": "Update", "subresource": "scale", "fieldsV1": replicas}, false},
		"Helm by the client's side": {map[string]any{"manager": "helm", "operation": "Update", "fieldsV1": rest}, true},
		"somebody's restart":        {map[string]any{"manager": "kubectl-rollout", "operation": "Update", "fieldsV1": rest}, false},
	} {
		values, err := Values("minimal")
		if err != nil {
			t.Fatal(err)
		}
		values["aggregator"] = map[string]any{"autoscaling": map[string]any{"mode": "HPA"}}
		cluster := Living(keyInUse)
		others := map[string]any{"manager": "helm", "operation": "Apply", "fieldsV1": map[string]any{"f:metadata": map[string]any{}}}
		cluster["StatefulSet/weir-aggregator"] = map[string]any{
			"metadata": map[string]any{"managedFields": []any{others, tt.owner}}, "spec": map[string]any{"replicas": int64(7)},
		}
		files, err := Render(values, cluster)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(files["aggregator/statefulset.yaml"], "  replicas: 7\n"); got != tt.want {
			t.Errorf("the number is of %s: rendered %v, want %v", name, got, tt.want)
		}
	}
}

// A program is killed after its own bound has passed, and Go knows of the memory limit before the kernel does.
func TestBoundsOfAPodFollowItsProgram(t *testing.T) {
	for values, want := range map[string][]string{
		"aggregator: {config: {flush: 1s}}":                       {"terminationGracePeriodSeconds: 30\n", "GOMEMLIMIT, value: 921MiB"},
		"aggregator: {config: {stop: {grace: 1m30s}}}":            {"terminationGracePeriodSeconds: 100\n"},
		"aggregator: {config: {stop: {grace: 20s}}}":              {"terminationGracePeriodSeconds: 30\n"},
		"aggregator: {resources: {limits: {memory: 100Mi}}}":      {"GOMEMLIMIT, value: 90MiB"},
		"aggregator: {resources: {limits: {memory: 1000000000}}}": {"memory: 1000000000"}, // as the program does without
	} {
		v := map[string]any{}
		if err := yaml.Unmarshal([]byte(values), &v); err != nil {
			t.Fatal(err)
		}
		least, err := Values("minimal")
		if err != nil {
			t.Fatal(err)
		}
		files, err := Render(util.CoalesceTables(v, least), Living(keyInUse))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if got := files["aggregator/statefulset.yaml"]; !strings.Contains(got, w) {
				t.Errorf("%s: no %q in\n%s", values, w, got)
			}
		}
	}
}

// Without an issuer of the user's, what kube-apiserver trusts outlives the certificates that it trusts by it.
func TestARenewedCertificateIsTrusted(t *testing.T) {
	values, err := Values("minimal")
	if err != nil {
		t.Fatal(err)
	}
	values["injection"] = map[string]any{"certificates": map[string]any{"mode": "CertManager"}}
	files, err := Render(values, Living(keyInUse))
	if err != nil {
		t.Fatal(err)
	}
	list, err := files.Objects()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]any{}
	for _, o := range list {
		found[o.GetKind()+"/"+o.GetName()] = o.Object
	}
	at := func(object string, path ...string) any {
		v, _, err := unstructured.NestedFieldNoCopy(found[object], path...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, tt := range []struct{ got, want any }{
		{at("MutatingWebhookConfiguration/weir-injector", "metadata", "annotations", "cert-manager.io/inject-ca-from"), "weir-system/weir-webhook-ca"},
		{at("Certificate/weir-webhook-ca", "spec", "isCA"), true},
		{at("Certificate/weir-webhook-ca", "spec", "privateKey", "rotationPolicy"), "Never"},
		{at("Certificate/weir-webhook-ca", "spec", "issuerRef", "name"), "weir-webhook-ca"},
		{at("Issuer/weir-webhook-ca", "spec", "selfSigned"), map[string]any{}},
		{at("Issuer/weir-webhook", "spec", "ca", "secretName"), at("Certificate/weir-webhook-ca", "spec", "secretName")},
		{at("Certificate/weir-webhook", "spec", "issuerRef", "name"), "weir-webhook"},
	} {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("got %v, want %v", tt.got, tt.want)
		}
	}
}

// What scales the aggregators leaves their number to whoever scales.
func TestScaling(t *testing.T) {
	values, err := Values("minimal")
	if err != nil {
		t.Fatal(err)
	}
	values["aggregator"] = map[string]any{"autoscaling": map[string]any{"mode": "HPA", "maxReplicas": 3}}
	files, err := Render(values, sets["minimal"])
	if err != nil {
		t.Fatal(err)
	}
	list, err := files.Objects()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]*unstructured.Unstructured{}
	for _, o := range list {
		kinds[o.GetKind()] = o
	}
	hpa := into[autoscalingv2.HorizontalPodAutoscaler](t, kinds["HorizontalPodAutoscaler"])
	if hpa.Spec.ScaleTargetRef.Name != "weir-aggregator" || *hpa.Spec.MinReplicas != 2 || hpa.Spec.MaxReplicas != 3 {
		t.Errorf("%+v", hpa.Spec)
	}
	for name, set := range map[string]*unstructured.Unstructured{"HPA": kinds["StatefulSet"], "KEDA": objects(t, "everything")["StatefulSet/weir-aggregator"]} {
		if _, found, _ := unstructured.NestedFieldNoCopy(set.Object, "spec", "replicas"); found {
			t.Errorf("%s: the StatefulSet has a number of its own, which each upgrade would set back to", name)
		}
	}
}
