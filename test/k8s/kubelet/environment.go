package kubelet

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// variable is one of a container's environment.
type variable struct{ name, value string }

// environment is the container's own, in order, references resolved.
func (v *volumes) environment(ctx context.Context, c *corev1.Container) ([]variable, error) {
	if len(c.EnvFrom) > 0 {
		return nil, fmt.Errorf("envFrom is not played")
	}
	var out []variable
	for i := range c.Env {
		e := &c.Env[i]
		value := expand(e.Value, out)
		if e.ValueFrom != nil {
			var err error
			if value, err = v.from(ctx, e.ValueFrom); err != nil {
				return nil, fmt.Errorf("env %s: %w", e.Name, err)
			}
		}
		out = append(out, variable{e.Name, value})
	}
	return out, nil
}

func (v *volumes) from(ctx context.Context, s *corev1.EnvVarSource) (string, error) {
	switch {
	case s.FieldRef != nil:
		return fieldOf(v.pod, s.FieldRef.FieldPath)
	case s.SecretKeyRef != nil:
		data, err := v.secret(ctx, s.SecretKeyRef.Name)
		return key(string(data[s.SecretKeyRef.Key]), s.SecretKeyRef.Key, err)
	case s.ConfigMapKeyRef != nil:
		data, err := v.configMap(ctx, s.ConfigMapKeyRef.Name)
		return key(string(data[s.ConfigMapKeyRef.Key]), s.ConfigMapKeyRef.Key, err)
	default:
		return "", fmt.Errorf("this source of a value is not played")
	}
}

func key(value, name string, err error) (string, error) {
	if err == nil && value == "" {
		err = fmt.Errorf("it has no key %s", name)
	}
	return value, err
}

// fieldOf is a field of the pod, as the downward API has it.
func fieldOf(p *corev1.Pod, field string) (string, error) {
	switch field {
	case "metadata.name":
		return p.Name, nil
	case "metadata.namespace":
		return p.Namespace, nil
	case "metadata.uid":
		return string(p.UID), nil
	case "metadata.labels":
		return lines(p.Labels), nil
	case "metadata.annotations":
		return lines(p.Annotations), nil
	case "spec.nodeName":
		return p.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return p.Spec.ServiceAccountName, nil
	}
	for prefix, values := range map[string]map[string]string{"metadata.labels['": p.Labels, "metadata.annotations['": p.Annotations} {
		if name, is := strings.CutPrefix(field, prefix); is {
			return values[strings.TrimSuffix(name, "']")], nil
		}
	}
	return "", fmt.Errorf("field %s is not played", field)
}

func lines(m map[string]string) string {
	var out []string
	for _, k := range sorted(m) {
		out = append(out, fmt.Sprintf("%s=%q", k, m[k]))
	}
	return strings.Join(out, "\n")
}

// expand replaces $(NAME) by the variable's value; $$ is $, and what is unknown stays.
func expand(s string, values []variable) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		if strings.HasPrefix(rest, "$") {
			out.WriteByte('$')
			s = rest[1:]
			continue
		}
		name, after, closed := strings.Cut(strings.TrimPrefix(rest, "("), ")")
		if value, known := lookup(values, name); strings.HasPrefix(rest, "(") && closed && known {
			out.WriteString(value)
			s = after
			continue
		}
		out.WriteByte('$')
		s = rest
	}
}

func lookup(values []variable, name string) (value string, known bool) {
	for _, v := range values {
		if v.name == name {
			value, known = v.value, true
		}
	}
	return value, known
}

// secret is the data of a Secret of the pod's namespace.
func (v *volumes) secret(ctx context.Context, name string) (map[string][]byte, error) {
	var s corev1.Secret
	if err := v.client.Get(ctx, client.ObjectKey{Namespace: v.pod.Namespace, Name: name}, &s); err != nil {
		return nil, err
	}
	return s.Data, nil
}

// configMap is the data of a ConfigMap of the pod's namespace.
func (v *volumes) configMap(ctx context.Context, name string) (map[string][]byte, error) {
	var m corev1.ConfigMap
	if err := v.client.Get(ctx, client.ObjectKey{Namespace: v.pod.Namespace, Name: name}, &m); err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(m.Data)+len(m.BinaryData))
	for k, text := range m.Data {
		out[k] = []byte(text)
	}
	for k, b := range m.BinaryData {
		out[k] = b
	}
	return out, nil
}
