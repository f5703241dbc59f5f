package inject

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/configfile"
	"github.com/weirproxy/weir/internal/listen"
)

// tells is the configuration that one pod's sidecar is given.
func (e *Engine) tells(c choices) config.Sidecar {
	s := e.settings
	out := config.DefaultSidecar()
	out.Listen = c.listen
	out.Server = orElse(s.Server, out.Server)
	out.Pod = config.Pod{Namespace: reference(envNamespace), Name: reference(envName)}
	if len(c.targets) > 0 {
		out.Targets = c.targets // with an owner or labels they could only be named by Envoy
	} else {
		out.Pod.OwnerKind, out.Pod.OwnerName, out.Pod.Labels = c.ownerKind, c.ownerName, c.labels
	}
	out.IdentityKeyFile = dirIdentity + "/" + s.IdentityKey
	out.StateDir = dirState
	out.MaxCounters = orElse(s.MaxCounters, out.MaxCounters)
	out.Kafka = s.Kafka
	for _, file := range []*string{
		&out.Kafka.TLS.CAFile, &out.Kafka.TLS.CertFile, &out.Kafka.TLS.KeyFile, &out.Kafka.SASL.PasswordFile,
	} {
		if *file != "" {
			*file = dirKafka + "/" + *file
		}
	}
	out.Admin.MetricsAddress = s.MetricsAddress
	out.Log.Level = orElse(c.logLevel, out.Log.Level)
	out.Stop.Grace = s.Grace
	return out
}

// reference is replaced by the variable's value where Kubernetes starts the container.
func reference(env string) string { return "$(" + env + ")" }

// flagsOf are the flags that say how c differs from the defaults, in the order of the settings.
func flagsOf(c config.Sidecar) []string {
	standard := config.DefaultSidecar()
	defaults := configfile.Fields(&standard)
	var flags []string
	for i, f := range configfile.Fields(&c) {
		if !reflect.DeepEqual(f.Value.Interface(), defaults[i].Value.Interface()) {
			flags = append(flags, flagOf(f)...)
		}
	}
	return flags
}

// flagOf is a setting as flags: lists and maps as one flag an item.
func flagOf(f configfile.Field) (flags []string) {
	switch v := f.Value.Interface().(type) {
	case []string:
		for _, item := range v {
			flags = append(flags, "--"+f.Flag+"="+item)
		}
	case map[string]string:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			flags = append(flags, "--"+f.Flag+"="+k+"="+v[k])
		}
	default:
		flags = append(flags, fmt.Sprintf("--%s=%v", f.Flag, v))
	}
	return flags
}

// container is the sidecar for one pod.
func (e *Engine) container(c choices) corev1.Container {
	s := e.settings
	out := corev1.Container{
		Name: Container, Image: s.Image, ImagePullPolicy: corev1.PullPolicy(s.PullPolicy),
		Command:         []string{s.Program},
		Args:            append([]string{"run"}, flagsOf(e.tells(c))...),
		Env:             []corev1.EnvVar{fieldEnv(envNamespace, "metadata.namespace"), fieldEnv(envName, "metadata.name")},
		Resources:       c.resources,
		SecurityContext: s.securityContext(),
		VolumeMounts:    e.mounts(c),
		// Listening is started; ready comes with policies and decisions, or 10 s later without them, so that
		// no pod waits for Kafka. A sidecar that was ready stays so, hence the patience with a slow probe.
		StartupProbe:   s.probe(60, 1, "healthcheck", "--live"),
		ReadinessProbe: s.probe(6, 5, "healthcheck"),
	}
	if port, ok := tcpPort(s.MetricsAddress); ok {
		out.Ports = []corev1.ContainerPort{{Name: "weir-metrics", ContainerPort: port, Protocol: corev1.ProtocolTCP}}
	}
	if s.Mode == Native {
		out.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	} else {
		out.Lifecycle = e.lifecycle(c)
	}
	return out
}

// lifecycle makes up, for a plain container, for the order that Kubernetes gives native sidecars: the next
// container starts once this one listens, and this one stays while they end.
func (e *Engine) lifecycle(c choices) *corev1.Lifecycle {
	l := &corev1.Lifecycle{PostStart: e.hook("wait", "--live=60s")}
	if c.drain > 0 {
		l.PreStop = e.hook("wait", "--for="+c.drain.String())
	}
	return l
}

func (e *Engine) hook(args ...string) *corev1.LifecycleHandler {
	return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: append([]string{e.settings.Program}, args...)}}
}

func (s Settings) probe(failures, period int32, args ...string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: append([]string{s.Program}, args...)}},
		PeriodSeconds:    period,
		TimeoutSeconds:   5,
		FailureThreshold: failures,
	}
}

// securityContext satisfies the Pod Security Standard "restricted".
func (s Settings) securityContext() *corev1.SecurityContext {
	out := &corev1.SecurityContext{
		RunAsNonRoot:             new(true),
		AllowPrivilegeEscalation: new(false), Privileged: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if s.User != 0 {
		out.RunAsUser, out.RunAsGroup = new(s.User), new(s.Group)
	}
	return out
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}}
}

// requirements are the resources in Kubernetes' type; a request is at most its limit.
func (r Resources) requirements() (corev1.ResourceRequirements, error) {
	out, err := r.quantities()
	errs := []error{err}
	for name, limit := range out.Limits {
		if request, ok := out.Requests[name]; ok && request.Cmp(limit) > 0 {
			errs = append(errs, fmt.Errorf("%s: the request %s is above the limit %s; raise the limit or lower the request", name, request.String(), limit.String()))
		}
	}
	return out, errors.Join(errs...)
}

// quantities are the resources in Kubernetes' type, each by itself.
func (r Resources) quantities() (out corev1.ResourceRequirements, err error) {
	var errs []error
	for _, q := range []struct {
		field, text string
		list        *corev1.ResourceList
		name        corev1.ResourceName
	}{
		{"cpu-request", r.CPURequest, &out.Requests, corev1.ResourceCPU},
		{"cpu-limit", r.CPULimit, &out.Limits, corev1.ResourceCPU},
		{"memory-request", r.MemoryRequest, &out.Requests, corev1.ResourceMemory},
		{"memory-limit", r.MemoryLimit, &out.Limits, corev1.ResourceMemory},
	} {
		parsed, err := quantity(q.field, q.text)
		if err != nil {
			errs = append(errs, err)
		}
		if parsed == nil {
			continue
		}
		if *q.list == nil {
			*q.list = corev1.ResourceList{}
		}
		(*q.list)[q.name] = *parsed
	}
	return out, errors.Join(errs...)
}

// tcpPort is the port of a TCP address.
func tcpPort(addr string) (int32, bool) {
	a, err := listen.Parse(addr)
	if err != nil || a.Network != "tcp" {
		return 0, false
	}
	for i := len(a.Path) - 1; i >= 0; i-- {
		if a.Path[i] == ':' {
			port, err := strconv.ParseInt(a.Path[i+1:], 10, 32)
			return int32(port), err == nil && port > 0
		}
	}
	return 0, false
}
