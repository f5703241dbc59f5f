package inject

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weirproxy/weir/internal/configfile"
	"github.com/weirproxy/weir/internal/log"
	"github.com/weirproxy/weir/internal/policy"
)

// AnnotationError is an annotation that cannot be met: the mistake of the pod's author, and nobody else's.
type AnnotationError struct {
	Annotation string
	Err        error
}

// Error names the annotation.
func (e *AnnotationError) Error() string { return "annotation " + e.Annotation + ": " + e.Err.Error() }

// Unwrap is what is wrong with it.
func (e *AnnotationError) Unwrap() error { return e.Err }

// choices are what holds for one pod: the settings, with what its annotations may choose.
type choices struct {
	listen    string // as the sidecar is told
	logLevel  string
	targets   []string // named by annotation; none: found from owner and labels
	ownerKind string
	ownerName string
	labels    map[string]string
	resources corev1.ResourceRequirements
	proxies   []string // containers that get the socket
	drain     time.Duration
	notes     []string
}

func (c choices) unix() bool { return strings.HasPrefix(c.listen, "unix:") }

func (c *choices) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// choose reads the pod's annotations; the error is all that is wrong with them.
func (e *Engine) choose(pod *corev1.PodTemplateSpec, s Subject) (choices, error) {
	c := choices{ownerKind: s.OwnerKind, ownerName: s.OwnerName}
	a := pod.Annotations
	var errs []error
	check := func(annotation string, err error) {
		if err != nil {
			errs = append(errs, &AnnotationError{annotation, err})
		}
	}
	conflict := func(annotation string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("annotation %s: %w", annotation, err))
		}
	}
	var err error
	c.listen, err = listens(orElse(a[AnnotationListen], e.settings.Listen))
	check(AnnotationListen, err)
	conflict(AnnotationListen, e.settings.reaches(c.listen))
	c.logLevel = orElse(a[AnnotationLogLevel], e.settings.LogLevel)
	if c.logLevel != "" {
		_, err = log.ParseLevel(c.logLevel)
		check(AnnotationLogLevel, err)
	}
	if text, named := a[AnnotationTarget]; named {
		c.targets, err = targets(text, s.Namespace)
		check(AnnotationTarget, err)
		conflict(AnnotationTarget, e.foreign(c.targets, s.Namespace))
	}
	annotation, err := e.resources(a, &c)
	check(annotation, err)
	c.labels, err = labelsOf(pod.Labels)
	errs = append(errs, err, nameError(c.ownerName))
	if len(c.targets) == 0 && c.ownerKind == "" && len(c.labels) == 0 {
		c.note("it has neither owner nor labels, so no policy can be its own; name a target with annotation %s", AnnotationTarget)
	}
	if c.unix() {
		check(AnnotationProxy, c.findProxies(pod))
	}
	errs = append(errs, e.ports(c, pod))
	c.drains(e.settings, pod)
	c.unknown(a)
	return c, errors.Join(errs...)
}

// targets are the named ones; those of the pod's own namespace, whichever that will be, by reference.
func targets(annotation, namespace string) (targets []string, err error) {
	for name := range strings.SplitSeq(annotation, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		own := namespace
		if strings.Count(name, "/") == 2 {
			own, name, _ = strings.Cut(name, "/")
			if own == "" {
				return nil, fmt.Errorf("/%s: the namespace is missing; write %s for one in the pod's namespace", name, name)
			}
		}
		_, kind, _, err := policy.ParseTarget(orElse(own, "namespace") + "/" + name)
		if err != nil {
			return nil, fmt.Errorf("%w; or Kind/name for one in the pod's namespace", err)
		}
		if err := kindError(kind); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if own == namespace {
			own = reference(envNamespace)
		}
		targets = append(targets, own+"/"+name)
	}
	switch {
	case len(targets) == 0:
		return nil, errors.New("it names no target; write Service/orders, or leave the annotation out")
	case len(targets) > maxTargets:
		return nil, fmt.Errorf("%d targets, at most %d", len(targets), maxTargets)
	}
	return targets, nil
}

// maxTargets is how many a sidecar takes.
const maxTargets = 256

// targetKinds are those that a policy may have.
func targetKinds() []string {
	return []string{"Service", "Deployment", "StatefulSet", "DaemonSet", "Gateway", "HTTPRoute", "GRPCRoute"}
}

func kindError(kind string) error {
	if slices.Contains(targetKinds(), kind) {
		return nil
	}
	for _, known := range targetKinds() {
		if strings.EqualFold(kind, known) {
			return fmt.Errorf("no policy is for kind %q; write %s", kind, known)
		}
	}
	if near, ok := configfile.Nearest(kind, targetKinds()); ok {
		return fmt.Errorf("no policy is for kind %q; did you mean %s?", kind, near)
	}
	return fmt.Errorf("no policy is for kind %q; there are %s", kind, strings.Join(targetKinds(), ", "))
}

// foreign refuses targets of other namespaces but to the pods of shared gateways.
func (e *Engine) foreign(targets []string, namespace string) error {
	if slices.Contains(e.settings.ForeignTargets, namespace) {
		return nil
	}
	for _, target := range targets {
		own, name, _ := strings.Cut(target, "/")
		switch {
		case own == reference(envNamespace):
		case namespace == "":
			return fmt.Errorf("%s: the pod's namespace is not known here; write %s, or give --namespace", target, name)
		default:
			return fmt.Errorf("%s: a pod of namespace %s may name targets of its own namespace only; foreignTargets of the injector's settings lists those that may name others", target, namespace)
		}
	}
	return nil
}

// resources are the settings' with what the pod chose in place; annotation is the one that an error is of. What the
// pod chose by itself may be wrong; where it does not go with the settings, which change without it, the lower holds.
func (e *Engine) resources(a map[string]string, c *choices) (annotation string, err error) {
	r, own := e.settings.Resources, Resources{}
	for _, q := range []struct {
		annotation string
		field, own *string
	}{
		{AnnotationCPURequest, &r.CPURequest, &own.CPURequest}, {AnnotationCPULimit, &r.CPULimit, &own.CPULimit},
		{AnnotationMemoryRequest, &r.MemoryRequest, &own.MemoryRequest}, {AnnotationMemoryLimit, &r.MemoryLimit, &own.MemoryLimit},
	} {
		switch text, ok := a[q.annotation]; {
		case text == "none":
			*q.field = ""
		case ok:
			*q.own = orElse(text, "?") // an empty one is a mistake
			*q.field = *q.own
			if _, err := quantity(strings.TrimPrefix(q.annotation, domain), *q.own); err != nil {
				return q.annotation, err
			}
		}
	}
	if _, err := own.requirements(); err != nil {
		return domain + "…", err
	}
	if c.resources, err = r.quantities(); err != nil {
		return domain + "…", err // not reached: settings and annotations are valid each
	}
	c.lower("the limit")
	return "", nil
}

// lower makes each request at most its limit, or the pod would be refused.
func (c *choices) lower(whose string) {
	for _, name := range slices.Sorted(maps.Keys(c.resources.Limits)) {
		limit := c.resources.Limits[name]
		if request, ok := c.resources.Requests[name]; ok && request.Cmp(limit) > 0 {
			c.note("the sidecar's request for %s is %s: %s is below %s", name, limit.String(), whose, request.String())
			c.resources.Requests[name] = limit
		}
	}
}

// fillResources takes over what the sidecar that is there has and the injector sets not.
func (c *choices) fillResources(pod *corev1.PodTemplateSpec) {
	for _, k := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if k.Name == Container {
			c.resources.Limits = filled(c.resources.Limits, k.Resources.Limits)
			c.resources.Requests = filled(c.resources.Requests, k.Resources.Requests)
			c.lower("the namespace's default limit")
		}
	}
}

// filled is own with what only others has.
func filled(own, others corev1.ResourceList) corev1.ResourceList {
	if len(others) == 0 {
		return own
	}
	out := maps.Clone(others)
	maps.Copy(out, own)
	return out
}

// labelsOf are the labels that a Service's selector may ask for, checked since they become arguments.
func labelsOf(labels map[string]string) (map[string]string, error) {
	out := maps.Clone(labels)
	for _, k := range []string{Label, "pod-template-hash", "controller-revision-hash", "pod-template-generation"} {
		delete(out, k)
	}
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(out)) {
		if why := append(validation.IsQualifiedName(k), validation.IsValidLabelValue(out[k])...); len(why) > 0 {
			errs = append(errs, fmt.Errorf("label %s=%q: %s", k, out[k], why[0]))
		}
	}
	return out, errors.Join(errs...)
}

func nameError(owner string) error {
	if why := validation.IsDNS1123Subdomain(owner); owner != "" && len(why) > 0 {
		return fmt.Errorf("name %q: %s", owner, why[0])
	}
	return nil
}

// findProxies chooses the containers that get the socket.
func (c *choices) findProxies(pod *corev1.PodTemplateSpec) error {
	var all []string
	for _, k := range pod.Spec.Containers {
		all = append(all, k.Name)
	}
	app := slices.Clone(all)
	for _, k := range pod.Spec.InitContainers {
		all = append(all, k.Name)
	}
	if named, ok := pod.Annotations[AnnotationProxy]; ok {
		return c.nameProxies(named, all)
	}
	for _, name := range proxyNames() {
		if slices.Contains(all, name) {
			c.proxies = []string{name}
			return nil
		}
	}
	c.proxies = slices.DeleteFunc(app, func(name string) bool { return name == Container })
	c.note("no container is known to be the proxy (%s), so all of the pod's get the socket; name yours with annotation %s",
		strings.Join(proxyNames(), ", "), AnnotationProxy)
	if asksForIstio(pod) {
		c.note("Istio's proxy is not there yet: if the webhook does not inject this pod once more, set annotation " +
			`sidecar.istio.io/userVolumeMount: '{"` + volumeRun + `":{"mountPath":"` + dirRun + `","readonly":true}}'`)
	}
	return nil
}

// nameProxies takes the named ones. One that is not there may be another injector's, which comes later.
func (c *choices) nameProxies(named string, all []string) error {
	for name := range strings.SplitSeq(named, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !slices.Contains(all, name) {
			c.note("the pod has no container %q (annotation %s), unless another injector adds it; it has %s", name, AnnotationProxy, strings.Join(all, ", "))
		}
		c.proxies = append(c.proxies, name)
	}
	if len(c.proxies) == 0 {
		return errors.New("it names no container; name the proxy's, or leave the annotation out")
	}
	return nil
}

func asksForIstio(pod *corev1.PodTemplateSpec) bool {
	const inject = "sidecar.istio.io/inject"
	return pod.Labels[inject] == "true" || pod.Annotations[inject] == "true"
}

// ports refuses a port that another container of the pod says it listens on.
func (e *Engine) ports(c choices, pod *corev1.PodTemplateSpec) error {
	taken := map[int32]string{}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, k := range list {
			for _, p := range k.Ports {
				if k.Name != Container && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP) {
					taken[p.ContainerPort] = k.Name
				}
			}
		}
	}
	var errs []error
	for _, addr := range []string{c.listen, e.tells(c).Admin.Address, e.settings.MetricsAddress} {
		if port, ok := tcpPort(addr); ok && taken[port] != "" {
			errs = append(errs, fmt.Errorf("port %d: container %s has it, and the sidecar would listen on %s; change one of them (annotation %s, or metricsAddress of the injector's settings)",
				port, taken[port], addr, AnnotationListen))
		}
	}
	return errors.Join(errs...)
}

// drains is how long a plain container stays behind: the pod's own grace, less what the sidecar needs.
func (c *choices) drains(s Settings, pod *corev1.PodTemplateSpec) {
	grace := 30 * time.Second // Kubernetes' default
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
		grace = time.Duration(*g) * time.Second
	}
	left := grace - s.Grace - 2*time.Second
	if left < 0 {
		c.note("terminationGracePeriodSeconds is %v, and the sidecar's last reports may take %v: up to a flush of counts may be lost at the end; make it longer", grace, s.Grace)
	}
	if s.Mode == Plain {
		c.drain = max(0, min(s.Drain, left))
	}
}

// annotations are those that a pod may carry.
func annotations() []string {
	return []string{
		AnnotationTarget, AnnotationListen, AnnotationLogLevel, AnnotationProxy, AnnotationRecord,
		AnnotationCPURequest, AnnotationCPULimit, AnnotationMemoryRequest, AnnotationMemoryLimit,
	}
}

// unknown says which annotations nobody reads: a mistyped one would do nothing, in silence.
func (c *choices) unknown(a map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(a)) {
		if !strings.HasPrefix(k, domain) || slices.Contains(annotations(), k) {
			continue
		}
		if near, ok := configfile.Nearest(k, annotations()); ok {
			c.note("annotation %s is unknown and not used; did you mean %s?", k, near)
		} else if k == Label {
			c.note("%s is read as a label, not as an annotation", k)
		} else {
			c.note("annotation %s is unknown and not used", k)
		}
	}
}
