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
	var err error
	c.listen, err = e.settings.listens(orElse(a[AnnotationListen], e.settings.Listen))
	check(AnnotationListen, err)
	c.logLevel = orElse(a[AnnotationLogLevel], e.settings.LogLevel)
	if c.logLevel != "" {
		_, err = log.ParseLevel(c.logLevel)
		check(AnnotationLogLevel, err)
	}
	c.targets, err = e.targets(a[AnnotationTarget], s.Namespace)
	check(AnnotationTarget, err)
	c.resources, err = e.resources(a)
	check(domain+"…", err)
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

// targets are the named ones, each within the pod's own namespace but for those of shared gateways.
func (e *Engine) targets(annotation, namespace string) (targets []string, err error) {
	foreign := slices.Contains(e.settings.ForeignTargets, namespace)
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
		if _, _, _, err := policy.ParseTarget(orElse(own, "namespace") + "/" + name); err != nil {
			return nil, fmt.Errorf("%w; or Kind/name for one in the pod's namespace", err)
		}
		switch {
		case own == namespace: // the pod's own, whichever that will be
			own = reference(envNamespace)
		case namespace == "":
			return nil, fmt.Errorf("%s/%s: the pod's namespace is not known here; write %s, or give --namespace", own, name, name)
		case !foreign:
			return nil, fmt.Errorf("%s/%s: a pod of namespace %s may name targets of its own namespace only; foreignTargets of the injector's settings lists those that may name others", own, name, namespace)
		}
		targets = append(targets, own+"/"+name)
	}
	if len(targets) > maxTargets {
		return nil, fmt.Errorf("%d targets, at most %d", len(targets), maxTargets)
	}
	return targets, nil
}

// maxTargets is how many a sidecar takes.
const maxTargets = 256

func (e *Engine) resources(a map[string]string) (corev1.ResourceRequirements, error) {
	r := e.settings.Resources
	for annotation, field := range map[string]*string{
		AnnotationCPURequest: &r.CPURequest, AnnotationCPULimit: &r.CPULimit,
		AnnotationMemoryRequest: &r.MemoryRequest, AnnotationMemoryLimit: &r.MemoryLimit,
	} {
		switch text, ok := a[annotation]; {
		case text == "none":
			*field = ""
		case ok:
			*field = orElse(text, "?") // an empty one is a mistake
		}
	}
	return r.requirements()
}

// fillResources takes over what the sidecar that is there has and the injector sets not. A request is at most its
// limit, or the pod would be refused.
func (c *choices) fillResources(pod *corev1.PodTemplateSpec) {
	for _, k := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if k.Name != Container {
			continue
		}
		c.resources.Limits = filled(c.resources.Limits, k.Resources.Limits)
		c.resources.Requests = filled(c.resources.Requests, k.Resources.Requests)
		for name, limit := range c.resources.Limits {
			if request, ok := c.resources.Requests[name]; ok && request.Cmp(limit) > 0 {
				c.note("the sidecar's request for %s is %s: the namespace's default limit is below %s", name, limit.String(), request.String())
				c.resources.Requests[name] = limit
			}
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
	if named := pod.Annotations[AnnotationProxy]; named != "" {
		for name := range strings.SplitSeq(named, ",") {
			name = strings.TrimSpace(name)
			if !slices.Contains(all, name) && !slices.Contains(proxyNames(), name) {
				return fmt.Errorf("the pod has no container %q; it has %s", name, strings.Join(all, ", "))
			}
			c.proxies = append(c.proxies, name)
		}
		return nil
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
				if k.Name != Container {
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
