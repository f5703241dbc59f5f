package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// volumes are a pod's, each a directory of its name.
type volumes struct {
	client client.Client
	pod    *corev1.Pod
	dir    string
}

// mounts are where a container's paths are on this machine, longest first.
type mounts []mounted

type mounted struct {
	path *regexp.Regexp
	dir  string
}

// replace replaces every path below a mount in a text.
func (m mounts) replace(text string) string {
	for _, one := range m {
		text = one.path.ReplaceAllString(text, "${1}"+one.dir+"${2}")
	}
	return text
}

// mount makes the volumes that a container mounts. ConfigMaps in them may name files in any of these.
func (v *volumes) mount(ctx context.Context, c *corev1.Container) (mounts, error) {
	var out mounts
	list := slices.Clone(c.VolumeMounts)
	slices.SortFunc(list, func(a, b corev1.VolumeMount) int { return cmp.Compare(len(b.MountPath), len(a.MountPath)) })
	for i := range list {
		// What is before it ends no longer path; what is behind goes on below it, or does not.
		pattern := `(^|[=,:\s"']|//)` + regexp.QuoteMeta(filepath.Clean(list[i].MountPath)) + `($|[/?,:\s"'])`
		out = append(out, mounted{regexp.MustCompile(pattern), filepath.Join(v.dir, list[i].Name, list[i].SubPath)})
	}
	for i := range list {
		if err := v.make(ctx, list[i].Name, out); err != nil {
			return nil, fmt.Errorf("volume %s: %w", list[i].Name, err)
		}
	}
	return out, nil
}

// make makes a volume; one that is there stays as it is.
func (v *volumes) make(ctx context.Context, name string, m mounts) error {
	i := slices.IndexFunc(v.pod.Spec.Volumes, func(x corev1.Volume) bool { return x.Name == name })
	if i < 0 {
		return fmt.Errorf("the pod has none")
	}
	dir := filepath.Join(v.dir, name)
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	source := &v.pod.Spec.Volumes[i].VolumeSource
	if source.EmptyDir != nil {
		return os.MkdirAll(dir, 0o750)
	}
	files, err := v.files(ctx, source, m)
	if err != nil {
		return err
	}
	return write(dir, files)
}

// write makes a directory with files at once.
func write(dir string, files map[string][]byte) error {
	hidden := dir + ".new"
	for name, data := range files {
		file := filepath.Join(hidden, filepath.Clean("/"+name))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(hidden, 0o750); err != nil {
		return err
	}
	return os.Rename(hidden, dir)
}

// files are those of a volume, by their path in it.
func (v *volumes) files(ctx context.Context, s *corev1.VolumeSource, m mounts) (map[string][]byte, error) {
	switch {
	case s.Secret != nil:
		data, err := v.secret(ctx, s.Secret.SecretName)
		return chosen(data, s.Secret.Items, s.Secret.Optional, err)
	case s.ConfigMap != nil:
		return v.texts(ctx, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional, m)
	case s.DownwardAPI != nil:
		return v.downward(s.DownwardAPI.Items)
	case s.Projected != nil:
		return v.projected(ctx, s.Projected.Sources, m)
	default:
		return nil, fmt.Errorf("this kind of volume is not played")
	}
}

func (v *volumes) projected(ctx context.Context, sources []corev1.VolumeProjection, m mounts) (map[string][]byte, error) {
	out := make(map[string][]byte)
	for _, s := range sources {
		var files map[string][]byte
		var err error
		switch {
		case s.Secret != nil:
			data, getErr := v.secret(ctx, s.Secret.Name)
			files, err = chosen(data, s.Secret.Items, s.Secret.Optional, getErr)
		case s.ConfigMap != nil:
			files, err = v.texts(ctx, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional, m)
		case s.DownwardAPI != nil:
			files, err = v.downward(s.DownwardAPI.Items)
		default:
			err = fmt.Errorf("this kind of projection is not played")
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(out, files)
	}
	return out, nil
}

// texts are a ConfigMap's files, with paths replaced: programs read them where their volumes are.
func (v *volumes) texts(ctx context.Context, name string, items []corev1.KeyToPath, optional *bool, m mounts) (map[string][]byte, error) {
	data, err := v.configMap(ctx, name)
	files, err := chosen(data, items, optional, err)
	for path, text := range files {
		files[path] = []byte(m.replace(string(text)))
	}
	return files, err
}

func (v *volumes) downward(items []corev1.DownwardAPIVolumeFile) (map[string][]byte, error) {
	out := make(map[string][]byte)
	for _, i := range items {
		if i.FieldRef == nil {
			return nil, fmt.Errorf("%s: only fields of the pod are played", i.Path)
		}
		text, err := fieldOf(v.pod, i.FieldRef.FieldPath)
		if err != nil {
			return nil, err
		}
		out[i.Path] = []byte(text)
	}
	return out, nil
}

// chosen are the files of an object's data: all, or the items at their paths.
func chosen(data map[string][]byte, items []corev1.KeyToPath, optional *bool, err error) (map[string][]byte, error) {
	lenient := optional != nil && *optional
	if lenient && apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || len(items) == 0 {
		return maps.Clone(data), err
	}
	out := make(map[string][]byte)
	for _, i := range items {
		value, has := data[i.Key]
		if !has && !lenient {
			return nil, fmt.Errorf("it has no key %s", i.Key)
		}
		out[i.Path] = value
	}
	return out, nil
}

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
