package inject

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// apply writes all that is the injector's into the template.
func (e *Engine) apply(template object, pod *corev1.PodTemplateSpec, c *choices) error {
	rec, injected := recordOf(template)
	spec := within(template, "spec")
	if !injected {
		c.noteReserved(pod)
	}
	if err := e.applyContainer(spec, *c); err != nil {
		return err
	}
	if err := e.applyVolumes(spec, c); err != nil {
		return err
	}
	rec.Pod = setPodResources(spec, pod, rec.Pod, c.resources)
	group := int64(0)
	if c.unix() {
		group = e.settings.Group
	}
	rec.Group = setGroup(spec, rec.Group, group)
	rec.DefaultContainer = setDefaultContainer(template, rec.DefaultContainer, e.defaultContainer(pod))
	return rec.store(template)
}

// noteReserved says what of the pod's own is replaced because it has the injector's names.
func (c *choices) noteReserved(pod *corev1.PodTemplateSpec) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, k := range list {
			if k.Name == Container {
				c.note("the pod's own container %s is replaced: the name is the injector's", k.Name)
			}
		}
	}
	for _, v := range pod.Spec.Volumes {
		if slices.Contains(reservedVolumes(), v.Name) {
			c.note("the pod's own volume %s is replaced: the name is the injector's", v.Name)
		}
	}
}

// applyContainer puts the sidecar where it is already, or in its place.
func (e *Engine) applyContainer(spec object, c choices) error {
	tree, err := treeOf(e.container(c))
	if err != nil {
		return err
	}
	here, elsewhere, place := "initContainers", "containers", nativePlace
	if e.settings.Mode == Plain {
		here, elsewhere, place = elsewhere, here, plainPlace
	}
	list := listAt(spec, here)
	if e.settings.Mode == Native {
		list = c.behindProxy(list)
	}
	spec[here] = setNamed(list, tree, place(list))
	if l := listAt(spec, elsewhere); indexOf(l, Container) >= 0 {
		setList(spec, elsewhere, without(l, Container))
	}
	return nil
}

// behindProxy is the list without the sidecar where that stands behind a native proxy that asks it, so that it gets
// a new place: Istio's injector moves its proxy to the front.
func (c choices) behindProxy(list []any) []any {
	asking := append(proxyNames(), c.proxies...)
	proxy := slices.IndexFunc(list, func(item any) bool { return isNative(item) && slices.Contains(asking, nameOf(item)) })
	if own := indexOf(list, Container); proxy >= 0 && proxy < own {
		return without(list, Container)
	}
	return list
}

func isNative(item any) bool {
	o, _ := item.(object)
	return textAt(o, "restartPolicy") == string(corev1.ContainerRestartPolicyAlways)
}

// nativePlace is before the first native sidecar, so that the proxy starts after this one and ends before
// it; behind all init containers where there is none, so that a pod that waits for them is not yet counted.
func nativePlace(list []any) int {
	i := slices.IndexFunc(list, isNative)
	if i < 0 {
		return len(list)
	}
	return i
}

// plainPlace is the first, since containers start in order and the sidecar's hook holds the next ones; but
// not before Istio's proxy, which has to be the first where it holds the application.
func plainPlace(list []any) int {
	if len(list) > 0 && nameOf(list[0]) == "istio-proxy" {
		return 1
	}
	return 0
}

func (e *Engine) applyVolumes(spec object, c *choices) error {
	list := listAt(spec, "volumes")
	var wanted []string
	for _, v := range e.volumes(*c) {
		tree, err := treeOf(v)
		if err != nil {
			return err
		}
		wanted = append(wanted, v.Name)
		list = setNamed(list, tree, len(list))
	}
	gone := slices.DeleteFunc(reservedVolumes(), func(name string) bool { return slices.Contains(wanted, name) })
	setList(spec, "volumes", without(list, gone...))
	mount, err := treeOf(proxyMount())
	if err != nil {
		return err
	}
	eachContainer(spec, func(k object) {
		name := textAt(k, "name")
		if name == Container {
			return
		}
		mounts := listAt(k, "volumeMounts")
		if c.unix() && slices.Contains(c.proxies, name) {
			mounts = c.withoutOthersAt(mounts, name)
			mounts = setNamed(mounts, mount, len(mounts))
			setList(k, "volumeMounts", withoutReserved(mounts, volumeRun))
			return
		}
		if kept := withoutReserved(mounts, ""); len(kept) != len(mounts) {
			setList(k, "volumeMounts", kept)
		}
	})
	return nil
}

// withoutOthersAt is the mounts without those of the pod's own where the socket is to be: a path is mounted once.
func (c *choices) withoutOthersAt(mounts []any, container string) []any {
	return slices.DeleteFunc(slices.Clone(mounts), func(item any) bool {
		m, _ := item.(object)
		if nameOf(item) == volumeRun || path.Clean(textAt(m, "mountPath")) != dirRun {
			return false
		}
		c.note("container %s's own mount of volume %s at %s is replaced: the socket is there", container, nameOf(item), dirRun)
		return true
	})
}

// withoutReserved is the mounts without those of the injector's volumes, but for one.
func withoutReserved(mounts []any, but string) []any {
	return without(mounts, slices.DeleteFunc(reservedVolumes(), func(name string) bool { return name == but })...)
}

func eachContainer(spec object, visit func(object)) {
	for _, key := range containerLists() {
		for _, item := range listAt(spec, key) {
			if k, ok := item.(object); ok {
				visit(k)
			}
		}
	}
}

// setGroup makes group one of the pod's supplementary ones, and old none if it is another; 0 is none. It
// returns the group that is the injector's: 0 where the pod had it of its own.
func setGroup(spec object, old, group int64) int64 {
	context, _ := spec["securityContext"].(object)
	groups := listAt(context, "supplementalGroups")
	if old != 0 && old != group {
		groups = slices.DeleteFunc(slices.Clone(groups), func(g any) bool { return isNumber(g, old) })
		if context != nil {
			setList(context, "supplementalGroups", groups)
			prune(spec, "securityContext")
		}
	}
	if group == 0 {
		return 0
	}
	if slices.ContainsFunc(groups, func(g any) bool { return isNumber(g, group) }) {
		if old == group {
			return group
		}
		return 0
	}
	number := json.Number(strconv.FormatInt(group, 10))
	within(spec, "securityContext")["supplementalGroups"] = append(slices.Clone(groups), number)
	return group
}

func isNumber(v any, want int64) bool {
	data, err := json.Marshal(v)
	return err == nil && string(data) == strconv.FormatInt(want, 10)
}

// defaultContainer is which container kubectl means if none is named: a plain sidecar comes first and is
// not it.
func (e *Engine) defaultContainer(pod *corev1.PodTemplateSpec) string {
	if e.settings.Mode == Native {
		return ""
	}
	for _, k := range pod.Spec.Containers {
		if k.Name != Container && !slices.Contains(proxyNames(), k.Name) {
			return k.Name
		}
	}
	return ""
}

// setDefaultContainer sets the annotation where the pod has none of its own, and takes back what was set
// before. It returns what is the injector's.
func setDefaultContainer(template object, old, name string) string {
	own := textAt(at(template, "metadata", "annotations"), annotationDefaultContainer)
	if own != "" && own != old {
		return ""
	}
	if name == "" {
		delete(at(template, "metadata", "annotations"), annotationDefaultContainer)
		return ""
	}
	within(within(template, "metadata"), "annotations")[annotationDefaultContainer] = name
	return name
}

// Uninject takes the sidecar out of template, in place, and leaves the rest as it is.
func Uninject(template map[string]any) (Outcome, error) {
	pod, err := viewOf(template)
	if err != nil {
		return Outcome{}, err
	}
	rec, injected := recordOf(template)
	if !injected {
		return Outcome{Action: Skipped, Reason: "it carries no injected sidecar"}, nil
	}
	spec := within(template, "spec")
	for _, key := range []string{"initContainers", "containers"} {
		if l := listAt(spec, key); indexOf(l, Container) >= 0 {
			setList(spec, key, without(l, Container))
		}
	}
	setList(spec, "volumes", without(listAt(spec, "volumes"), reservedVolumes()...))
	eachContainer(spec, func(k object) { setList(k, "volumeMounts", withoutReserved(listAt(k, "volumeMounts"), "")) })
	setGroup(spec, rec.Group, 0)
	setPodResources(spec, pod, rec.Pod, corev1.ResourceRequirements{})
	setDefaultContainer(template, rec.DefaultContainer, "")
	delete(at(template, "metadata", "annotations"), AnnotationRecord)
	prune(template, "metadata", "annotations")
	return Outcome{Action: Removed, Reason: "the sidecar and what came with it"}, nil
}
