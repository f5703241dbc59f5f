package inject

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weirproxy/weir/internal/policy"
)

// A path is mounted once in a container, or kube-apiserver refuses the pod.
func TestAMountOfThePodsOwnWhereTheSocketGoesIsReplaced(t *testing.T) {
	for _, at := range []string{"/run/weir", "/run/weir/"} {
		pod := decoded(t, `
metadata: {labels: {app: p}}
spec:
  volumes: [{name: weir, emptyDir: {}}]
  containers:
  - {name: envoy, volumeMounts: [{name: weir, mountPath: `+at+`}, {name: weir, mountPath: /run/weir/more}]}
  - {name: app, volumeMounts: [{name: weir, mountPath: `+at+`}]}`)
		v, out := injected(t, engine(t, nil), pod)
		var paths []string
		for _, m := range v.Spec.Containers[0].VolumeMounts {
			paths = append(paths, m.Name+" "+m.MountPath)
		}
		if got := strings.Join(paths, ", "); got != "weir /run/weir/more, weir-run /run/weir" {
			t.Errorf("the proxy mounts %s", got)
		}
		if len(v.Spec.Containers[1].VolumeMounts) != 1 || !mounts(v, "app", "weir") {
			t.Errorf("a container that does not ask mounts %+v", v.Spec.Containers[1].VolumeMounts)
		}
		if len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "volume weir at /run/weir is replaced") {
			t.Errorf("notes %q", out.Notes)
		}
		if _, out := injected(t, engine(t, nil), pod); out.Action != Unchanged || len(out.Notes) > 0 {
			t.Errorf("once more: %+v", out)
		}
	}
}

// kube-apiserver refuses a pod whose containers together are above what it has as a whole.
func TestWhatAPodHasAsAWholeIsRaisedByTheSidecars(t *testing.T) {
	of := func(pod object) string {
		data, err := json.Marshal(at(pod, "spec", "resources"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const own = `{"limits":{"cpu":"1","memory":"128Mi"},"requests":{"cpu":"100m","hugepages-2Mi":"2Mi"}}`
	pod := decoded(t, `{spec: {resources: `+own+`, containers: [{name: envoy}]}}`)
	injected(t, engine(t, nil), pod)
	const raised = `{"limits":{"cpu":"1050m","memory":"320Mi"},"requests":{"cpu":"150m","hugepages-2Mi":"2Mi"}}`
	if got := of(pod); got != raised {
		t.Errorf("%s, want %s", got, raised)
	}
	if _, out := injected(t, engine(t, nil), pod); out.Action != Unchanged {
		t.Errorf("once more: %s, %s", out.Action, of(pod))
	}
	injected(t, engine(t, func(s *Settings) { s.Resources = Resources{CPURequest: "10m", CPULimit: "20m"} }), pod)
	if got, want := of(pod), `{"limits":{"cpu":"1020m","memory":"128Mi"},"requests":{"cpu":"110m","hugepages-2Mi":"2Mi"}}`; got != want {
		t.Errorf("with other settings: %s, want %s", got, want)
	}
	if _, err := Uninject(pod); err != nil || of(pod) != own {
		t.Errorf("after uninject (%v): %s, want %s", err, of(pod), own)
	}
}

// Settings change without the pods, and an eviction makes a pod anew: only what an annotation says by itself is its
// author's mistake.
func TestWhatDoesNotGoWithTheSettingsIsNotTheAnnotationsMistake(t *testing.T) {
	for _, tt := range []struct {
		annotations string
		change      func(*Settings)
		says        string // in an error that is no AnnotationError; empty: injected
		request     string
	}{
		{`{weirproxy.dev/cpu-request: 100m}`, func(s *Settings) { s.Resources.CPULimit = "80m" }, "", "80m"},
		{`{weirproxy.dev/cpu-limit: 20m}`, nil, "", "20m"},
		{`{weirproxy.dev/target: gw/Service/a}`, nil, "foreignTargets", ""},
		{`{weirproxy.dev/listen: "tcp://127.0.0.1:9000"}`, func(s *Settings) { s.MetricsAddress = "tcp://0.0.0.0:9000" }, "for its metrics", ""},
		{`{weirproxy.dev/listen: "unix:///run/weir/s"}`, openShift, "listen on tcp", ""},
	} {
		pod := decoded(t, `{metadata: {annotations: `+tt.annotations+`}, spec: {containers: [{name: envoy}]}}`)
		_, err := engine(t, tt.change).Inject(pod, Subject{Namespace: "shop", NamespaceLabel: Enabled})
		if mistake := (*AnnotationError)(nil); errors.As(err, &mistake) {
			t.Errorf("%s: %v is called its author's mistake", tt.annotations, err)
		}
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.annotations, err, tt.says)
		}
		if err != nil {
			continue
		}
		v, _ := viewOf(pod)
		if got := v.Spec.InitContainers[0].Resources.Requests[corev1.ResourceCPU]; got.String() != tt.request {
			t.Errorf("%s: requests %s, want %s", tt.annotations, got.String(), tt.request)
		}
	}
}

func openShift(s *Settings) { s.User, s.Group, s.Listen = 0, 0, "tcp://127.0.0.1:9191" }

func TestTheClusterMayChooseTheSidecarsUser(t *testing.T) {
	v, _ := injected(t, engine(t, openShift), decoded(t, plainPod))
	s := v.Spec.InitContainers[0].SecurityContext
	if s.RunAsUser != nil || s.RunAsGroup != nil || !*s.RunAsNonRoot || v.Spec.SecurityContext != nil {
		t.Errorf("the sidecar's %+v, the pod's %+v", s, v.Spec.SecurityContext)
	}
}

func TestAPortOfAnotherProtocolIsNotTaken(t *testing.T) {
	pod := decoded(t, `{spec: {containers: [{name: envoy, ports: [{containerPort: 9194, protocol: UDP}]}]}}`)
	if _, out := injected(t, engine(t, nil), pod); out.Action != Injected {
		t.Errorf("%+v", out)
	}
}

// The kinds that an annotation may name are those that a policy may.
func TestTargetKindsAreThoseOfPolicies(t *testing.T) {
	for _, kind := range append(targetKinds(), "Pod") {
		_, err := policy.Parse("p.yaml", []byte("apiVersion: weirproxy.dev/v1alpha1\nkind: QuotaPolicy\nmetadata: {name: a}\nspec: {targetRefs: [{kind: "+
			kind+", name: a}], limits: [{name: a, rates: [{limit: 1, window: 1s}]}]}"))
		if (err == nil) != (kindError(kind) == nil) {
			t.Errorf("%s: %v; the annotation: %v", kind, err, kindError(kind))
		}
	}
}
