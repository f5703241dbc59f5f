package inject

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// decoded is one document as a tree.
func decoded(t *testing.T, text string) object {
	t.Helper()
	o, ok, err := chunk{body: []byte(text)}.decode(true)
	if err != nil || !ok {
		t.Fatalf("no document (%v):\n%s", err, text)
	}
	return o
}

func injected(t *testing.T, e *Engine, pod object) (*corev1.PodTemplateSpec, Outcome) {
	t.Helper()
	out, err := e.Inject(pod, Subject{Namespace: "shop", NamespaceLabel: Enabled})
	if err != nil {
		t.Fatal(err)
	}
	v, err := viewOf(pod)
	if err != nil {
		t.Fatal(err)
	}
	return v, out
}

func names(l []corev1.Container) (out []string) {
	for _, k := range l {
		out = append(out, k.Name)
	}
	return out
}

const plainPod = `
metadata: {name: p, labels: {app: p}}
spec: {containers: [{name: envoy, image: e}, {name: app, image: a}]}`

func TestCase19TheProxyStartsAfterTheSidecarAndEndsBeforeIt(t *testing.T) {
	for name, tt := range map[string]struct {
		mode, pod  string
		init, main string
	}{
		"native, alone":            {Native, `{spec: {containers: [{name: app}]}}`, "weir-sidecar", "app"},
		"native, after waiting":    {Native, `{spec: {initContainers: [{name: wait}], containers: [{name: app}]}}`, "wait weir-sidecar", "app"},
		"native, before a proxy":   {Native, `{spec: {initContainers: [{name: wait}, {name: istio-proxy, restartPolicy: Always}, {name: istio-init}], containers: [{name: app}]}}`, "wait weir-sidecar istio-proxy istio-init", "app"},
		"plain, alone":             {Plain, `{spec: {containers: [{name: app}]}}`, "", "weir-sidecar app"},
		"plain, Istio's held":      {Plain, `{spec: {initContainers: [{name: istio-init}], containers: [{name: istio-proxy}, {name: app}]}}`, "istio-init", "istio-proxy weir-sidecar app"},
		"plain, Istio's not first": {Plain, `{spec: {containers: [{name: app}, {name: istio-proxy}]}}`, "", "weir-sidecar app istio-proxy"},
	} {
		v, _ := injected(t, engine(t, func(s *Settings) { s.Mode = tt.mode }), decoded(t, tt.pod))
		if got := strings.Join(names(v.Spec.InitContainers), " "); got != tt.init {
			t.Errorf("%s: init containers %q, want %q", name, got, tt.init)
		}
		if got := strings.Join(names(v.Spec.Containers), " "); got != tt.main {
			t.Errorf("%s: containers %q, want %q", name, got, tt.main)
		}
	}
}

// Istio's injector, when it is invoked again, puts its proxy first and its own init container last. Only the
// injector's own container moves then: before a native proxy that asks it.
func TestAnotherInjectorBetweenTwoInjectionsIsNotUndone(t *testing.T) {
	for _, mode := range []string{Native, Plain} {
		e := engine(t, func(s *Settings) { s.Mode = mode })
		pod := decoded(t, plainPod)
		injected(t, e, pod)
		spec := at(pod, "spec")
		list := "initContainers"
		if mode == Plain {
			list = "containers"
		}
		proxy := object{"name": "istio-proxy", "image": "i"}
		if mode == Native {
			proxy["restartPolicy"] = "Always"
		}
		spec[list] = append([]any{proxy}, listAt(spec, list)...)
		spec["initContainers"] = append(listAt(spec, "initContainers"), object{"name": "istio-init"})
		spec["volumes"] = append(listAt(spec, "volumes"), object{"name": "istio-envoy", "emptyDir": object{}})
		others := func() string { return strings.Replace(orders(t, pod), "weir-sidecar ", "", 1) }
		before := others()
		v, out := injected(t, e, pod)
		if got := others(); got != before {
			t.Errorf("%s: the order of others was changed from\n%s to\n%s", mode, before, got)
		}
		if all := names(v.Spec.InitContainers); mode == Native && slices.Index(all, Container) > slices.Index(all, "istio-proxy") {
			t.Errorf("Case 19: Envoy starts before the sidecar and ends after it: %s", all)
		}
		if out.Action != Updated || !mounts(v, "istio-proxy", volumeRun) || mounts(v, "app", volumeRun) {
			t.Errorf("%s: %s; the proxy that came since is to get the socket, and it alone", mode, out.Action)
		}
		if _, out := injected(t, e, pod); out.Action != Unchanged {
			t.Errorf("%s: the third injection: %s, want no change", mode, out.Action)
		}
	}
}

func orders(t *testing.T, pod object) string {
	t.Helper()
	v, err := viewOf(pod)
	if err != nil {
		t.Fatal(err)
	}
	var volumes []string
	for _, vol := range v.Spec.Volumes {
		volumes = append(volumes, vol.Name)
	}
	return strings.Join(slices.Concat(names(v.Spec.InitContainers), names(v.Spec.Containers), volumes), " ")
}

func mounts(v *corev1.PodTemplateSpec, container, volume string) bool {
	for _, k := range slices.Concat(v.Spec.InitContainers, v.Spec.Containers) {
		if k.Name == container {
			return slices.ContainsFunc(k.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
		}
	}
	return false
}

// An administrator changes the settings; pods that were injected before are injected again.
func TestOtherSettingsLeaveNothingOfTheOldOnes(t *testing.T) {
	to := map[string]func(*Settings){
		"plain":        func(s *Settings) { s.Mode = Plain },
		"tcp":          func(s *Settings) { s.Listen = "tcp://127.0.0.1:9191" },
		"group":        func(s *Settings) { s.Group = 4711 },
		"kafka secret": func(s *Settings) { s.KafkaSecret = "k" },
		"native":       nil,
	}
	for from, first := range to {
		for next, second := range to {
			pod, fresh := decoded(t, plainPod), decoded(t, plainPod)
			injected(t, engine(t, first), pod)
			injected(t, engine(t, second), pod)
			injected(t, engine(t, second), fresh)
			sortVolumes(pod, fresh)
			if !same(pod, fresh) {
				a, _ := json.MarshalIndent(pod, "", " ")
				b, _ := json.MarshalIndent(fresh, "", " ")
				t.Errorf("%s, then %s:\n%s\nwant\n%s", from, next, a, b)
			}
		}
	}
}

// kube-apiserver's LimitRanger gives a container defaults where it has none, and refuses the pod later if they went.
func TestWhatALimitRangeGaveTheSidecarStaysInANewPodOnly(t *testing.T) {
	given := func(t *testing.T, limit string, s Subject) corev1.ResourceRequirements {
		e, pod := engine(t, nil), decoded(t, plainPod)
		s.Namespace, s.NamespaceLabel = "shop", Enabled
		if _, err := e.Inject(pod, s); err != nil {
			t.Fatal(err)
		}
		own := listAt(at(pod, "spec"), "initContainers")[0].(object)
		own["resources"] = object{"limits": object{"cpu": limit, "memory": "7Gi"}, "requests": object{"cpu": "7", "ephemeral-storage": "1Gi"}}
		if _, err := e.Inject(pod, s); err != nil {
			t.Fatal(err)
		}
		v, err := viewOf(pod)
		if err != nil {
			t.Fatal(err)
		}
		return v.Spec.InitContainers[0].Resources
	}
	text := func(r corev1.ResourceRequirements) string {
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const own = `{"limits":{"memory":"192Mi"},"requests":{"cpu":"50m","memory":"48Mi"}}`
	if got := text(given(t, "500m", Subject{})); got != own {
		t.Errorf("in a manifest: %s, want %s", got, own)
	}
	want := `{"limits":{"cpu":"500m","memory":"192Mi"},"requests":{"cpu":"50m","ephemeral-storage":"1Gi","memory":"48Mi"}}`
	if got := text(given(t, "500m", Subject{Admitted: true})); got != want {
		t.Errorf("in a new pod: %s, want %s", got, want)
	}
	if got := given(t, "20m", Subject{Admitted: true}); got.Requests.Cpu().String() != "20m" {
		t.Errorf("a request above its limit, which no server takes: %s", text(got))
	}
}

func sortVolumes(pods ...object) {
	for _, p := range pods {
		slices.SortFunc(listAt(at(p, "spec"), "volumes"), func(a, b any) int { return strings.Compare(nameOf(a), nameOf(b)) })
	}
}

func TestTheContainerIsAsThePodSecurityStandardRestrictedWants(t *testing.T) {
	v, _ := injected(t, engine(t, nil), decoded(t, `{spec: {containers: [{name: envoy}]}}`))
	s := v.Spec.InitContainers[0].SecurityContext
	if !*s.RunAsNonRoot || *s.RunAsUser == 0 || *s.AllowPrivilegeEscalation || *s.Privileged || !*s.ReadOnlyRootFilesystem ||
		!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 ||
		s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("security context %+v", s)
	}
	for _, vol := range v.Spec.Volumes {
		if vol.EmptyDir == nil && vol.Secret == nil {
			t.Errorf("volume %s is neither an emptyDir nor a Secret", vol.Name)
		}
		if vol.EmptyDir != nil && vol.EmptyDir.SizeLimit == nil {
			t.Errorf("volume %s has no bound", vol.Name)
		}
	}
}

func TestOnlyTheSidecarSeesTheSecrets(t *testing.T) {
	e := engine(t, func(s *Settings) { s.KafkaSecret = "k" })
	v, _ := injected(t, e, decoded(t, `
spec:
  containers:
  - {name: app, volumeMounts: [{name: weir-identity, mountPath: /a}, {name: weir-kafka, mountPath: /b}, {name: own, mountPath: /c}]}
  volumes: [{name: own, emptyDir: {}}]`))
	if mounts(v, "app", volumeIdentity) || mounts(v, "app", volumeKafka) || !mounts(v, "app", "own") {
		t.Errorf("the application mounts %+v", v.Spec.Containers[0].VolumeMounts)
	}
}

// A pod of a group of its own keeps it, and a sidecar on TCP needs none.
func TestTheSocketsGroupIsAddedOnceAndTakenBackAlone(t *testing.T) {
	pod := decoded(t, `{spec: {securityContext: {supplementalGroups: [7, 65532]}, containers: [{name: envoy}]}}`)
	v, _ := injected(t, engine(t, nil), pod)
	if g := v.Spec.SecurityContext.SupplementalGroups; !slices.Equal(g, []int64{7, 65532}) {
		t.Errorf("groups %v", g)
	}
	if _, err := Uninject(pod); err != nil {
		t.Fatal(err)
	}
	if v, _ = viewOf(pod); !slices.Equal(v.Spec.SecurityContext.SupplementalGroups, []int64{7, 65532}) {
		t.Errorf("after uninject: %v, want the pod's own", v.Spec.SecurityContext.SupplementalGroups)
	}
	v, _ = injected(t, engine(t, func(s *Settings) { s.Listen = "tcp://127.0.0.1:9191" }), decoded(t, plainPod))
	if v.Spec.SecurityContext != nil || mounts(v, "envoy", volumeRun) {
		t.Errorf("on TCP: security context %+v", v.Spec.SecurityContext)
	}
}

func TestAPlainSidecarLeavesTheProxyTimeToEnd(t *testing.T) {
	e := engine(t, func(s *Settings) { s.Mode = Plain })
	for pod, want := range map[string]string{
		`{spec: {containers: [{name: envoy}]}}`:                                     "--for=15s", // of 30 s
		`{spec: {terminationGracePeriodSeconds: 600, containers: [{name: envoy}]}}`: "--for=15s",
		`{spec: {terminationGracePeriodSeconds: 12, containers: [{name: envoy}]}}`:  "--for=5s", // and 5 s for reports
		`{spec: {terminationGracePeriodSeconds: 3, containers: [{name: envoy}]}}`:   "",
	} {
		v, out := injected(t, e, decoded(t, pod))
		l, got := v.Spec.Containers[0].Lifecycle, ""
		if l.PreStop != nil {
			got = l.PreStop.Exec.Command[2]
		}
		if got != want {
			t.Errorf("%s: waits %q, want %q", pod, got, want)
		}
		if warned := strings.Contains(strings.Join(out.Notes, ""), "terminationGracePeriodSeconds"); warned != (want == "") {
			t.Errorf("%s: notes %q", pod, out.Notes)
		}
	}
	v, _ := injected(t, engine(t, nil), decoded(t, plainPod))
	if v.Spec.InitContainers[0].Lifecycle != nil {
		t.Error("a native sidecar has hooks, though Kubernetes itself keeps the order")
	}
}

func TestWhatAPodMayNotChooseIsRefusedWithTheRemedy(t *testing.T) {
	for annotations, want := range map[string]string{
		`{weirproxy.dev/target: bank/Service/accounts}`:                      "of its own namespace only",
		`{weirproxy.dev/target: orders}`:                                     "Kind/name for one in the pod's namespace",
		`{weirproxy.dev/target: Service/$(HOME)}`:                            "want namespace/Kind/name",
		`{weirproxy.dev/listen: "tcp://0.0.0.0:9191"}`:                       "listen on 127.0.0.1",
		`{weirproxy.dev/listen: "tcp://127.0.0.1:0"}`:                        "name a port",
		`{weirproxy.dev/listen: "tcp://127.0.0.1:8080"}`:                     "container app has it",
		`{weirproxy.dev/listen: "unix:///tmp/s"}`:                            "in /run/weir",
		`{weirproxy.dev/log-level: loud}`:                                    "annotation weirproxy.dev/log-level",
		`{weirproxy.dev/cpu-request: much}`:                                  "cpu-request: \"much\" is no quantity",
		`{weirproxy.dev/memory-limit: ""}`:                                   "memory-limit",
		`{weirproxy.dev/cpu-request: "2", weirproxy.dev/cpu-limit: "1"}`:     "raise the limit",
		`{weirproxy.dev/proxy-container: " ,"}`:                              "it names no container",
		`{weirproxy.dev/target: service/orders}`:                             "write Service",
		`{weirproxy.dev/target: Servce/orders}`:                              "did you mean Service?",
		`{weirproxy.dev/target: "Service/orders,Pod/x"}`:                     "there are Service, Deployment",
		`{weirproxy.dev/target: " , "}`:                                      "it names no target",
		`{weirproxy.dev/target: ""}`:                                         "it names no target",
		`{weirproxy.dev/listen: "tcp://127.0.0.1:9192"}`:                     "for its admin server",
		`{weirproxy.dev/listen: "tcp://127.0.0.1:9194"}`:                     "for its metrics",
		`{weirproxy.dev/proxy-container: "envoy,", weirproxy.dev/listen: x}`: "weirproxy.dev/listen",
	} {
		pod := decoded(t, `
metadata: {annotations: `+annotations+`}
spec: {containers: [{name: app, ports: [{containerPort: 8080}]}, {name: envoy}]}`)
		before, _ := clone(pod)
		_, err := engine(t, nil).Inject(pod, Subject{Namespace: "shop", NamespaceLabel: Enabled})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", annotations, err, want)
		}
		if !same(before, pod) {
			t.Errorf("%s: the pod was changed all the same", annotations)
		}
	}
}

func TestANamedTargetStandsForOwnerAndLabels(t *testing.T) {
	pod := decoded(t, `
metadata: {labels: {app: p}, annotations: {weirproxy.dev/target: "Service/a, shop/Deployment/b"}}
spec: {containers: [{name: envoy}]}`)
	e := engine(t, nil)
	if _, err := e.Inject(pod, Subject{Namespace: "shop", NamespaceLabel: Enabled, OwnerKind: "Deployment", OwnerName: "p"}); err != nil {
		t.Fatal(err)
	}
	v, _ := viewOf(pod)
	args := v.Spec.InitContainers[0].Args
	for _, want := range []string{"--target=$(WEIR_POD_NAMESPACE)/Service/a", "--target=$(WEIR_POD_NAMESPACE)/Deployment/b"} {
		if !slices.Contains(args, want) {
			t.Errorf("%q lacks %s", args, want)
		}
	}
	if joined := strings.Join(args, " "); strings.Contains(joined, "owner") || strings.Contains(joined, "labels") {
		t.Errorf("owner or labels are told too, and then targets are only to be named by Envoy: %q", args)
	}
}

func TestALabelThatNowSaysNoIsToldOfTheSidecarThatIsStillThere(t *testing.T) {
	pod := decoded(t, plainPod)
	injected(t, engine(t, nil), pod)
	at(pod, "metadata", "labels")[Label] = Disabled
	_, out := injected(t, engine(t, nil), pod)
	if out.Action != Skipped || len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "weir uninject") {
		t.Errorf("%+v", out)
	}
}

func TestSettingsAreRefusedWithTheirName(t *testing.T) {
	for want, change := range map[string]func(*Settings){
		"image":                  func(s *Settings) { s.Image = "" },
		"mode":                   func(s *Settings) { s.Mode = "native" },
		"pullPolicy":             func(s *Settings) { s.PullPolicy = "Sometimes" },
		"program":                func(s *Settings) { s.Program = "weir-sidecar" },
		"user 0":                 func(s *Settings) { s.User = 0 },
		"user -1":                func(s *Settings) { s.User = -1 },
		"listen on tcp":          func(s *Settings) { s.User, s.Group = 0, 0 },
		"for its admin server":   func(s *Settings) { s.Listen = "tcp://127.0.0.1:9192" },
		"for its metrics":        func(s *Settings) { s.Listen = "tcp://127.0.0.1:9194" },
		"metricsAddress":         func(s *Settings) { s.MetricsAddress = "tcp://0.0.0.0:9192" },
		"cpu-limit":              func(s *Settings) { s.Resources.CPULimit = "-1" },
		"identitySecret":         func(s *Settings) { s.IdentitySecret = "" },
		"kafka.brokers":          func(s *Settings) { s.Kafka.Brokers = nil },
		"kafka.tls.caFile":       func(s *Settings) { s.KafkaSecret, s.Kafka.TLS.CAFile = "k", "/etc/ca.crt" },
		"which is not set":       func(s *Settings) { s.Kafka.SASL.PasswordFile = "password" },
		"listen":                 func(s *Settings) { s.Listen = "unix:///tmp/s" },
		"admin.metricsAddress":   func(s *Settings) { s.MetricsAddress = "9194" },
		"logLevel":               func(s *Settings) { s.LogLevel = "loud" },
		"grace":                  func(s *Settings) { s.Grace = 0 },
		"replaced by Kubernetes": func(s *Settings) { s.Kafka.Brokers = []string{"$(HOST):9092"} },
	} {
		s := settings()
		change(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestOwnerOf(t *testing.T) {
	for meta, want := range map[string]string{
		`{labels: {pod-template-hash: abc}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-abc, controller: true}]}`: "Deployment/web",
		`{ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-abc, controller: true}]}`:                                   "ReplicaSet/web-abc",
		`{ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, controller: true}]}`:                                       "StatefulSet/db",
		`{ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db}]}`:                                                         "/",
		`{ownerReferences: [{apiVersion: batch/v1, kind: Job, name: once, controller: true}]}`:                                            "Job/once",
		// Others' kinds of the same name are other workloads: no policy names them.
		`{ownerReferences: [{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, name: db, controller: true}]}`:                               "/",
		`{labels: {pod-template-hash: abc}, ownerReferences: [{apiVersion: example.com/v1, kind: ReplicaSet, name: web-abc, controller: true}]}`: "/",
		`{}`: "/",
	} {
		m, err := metaOf(object{"metadata": decoded(t, meta)})
		if err != nil {
			t.Fatal(err)
		}
		if kind, name := OwnerOf(m); kind+"/"+name != want {
			t.Errorf("%s: %s/%s, want %s", meta, kind, name, want)
		}
	}
}

// A namespace that refuses gets no copies of the Secrets either: a pod there must not wait for them.
func TestANamespaceThatRefusesHoldsOverItsPods(t *testing.T) {
	pod := decoded(t, plainPod)
	at(pod, "metadata", "labels")[Label] = Enabled
	out, err := engine(t, nil).Inject(pod, Subject{Namespace: "shop", NamespaceLabel: Disabled})
	if err != nil || out.Action != Skipped || !strings.Contains(out.Reason, "namespace") {
		t.Errorf("%+v, %v", out, err)
	}
}
