package inject

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// secretMode lets the sidecar's user, who owns nothing, read the files of a Secret. Only the sidecar
// mounts them.
const secretMode = 0o444

// volumes are those of one pod.
func (e *Engine) volumes(c choices) []corev1.Volume {
	s := e.settings
	out := []corev1.Volume{
		secretVolume(volumeIdentity, s.IdentitySecret, s.IdentityKey),
		{Name: volumeState, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: size("64Mi")}}},
	}
	if s.KafkaSecret != "" {
		out = append(out, secretVolume(volumeKafka, s.KafkaSecret))
	}
	if c.unix() {
		out = append(out, corev1.Volume{Name: volumeRun, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: size("1Mi")},
		}})
	}
	return out
}

// secretVolume is a Secret's volume, of the keys given or of all.
func secretVolume(name, secret string, keys ...string) corev1.Volume {
	source := &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(int32(secretMode))}
	for _, key := range keys {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: source}}
}

func size(q string) *resource.Quantity { parsed := resource.MustParse(q); return &parsed }

// mounts are the sidecar's own.
func (e *Engine) mounts(c choices) []corev1.VolumeMount {
	out := []corev1.VolumeMount{
		{Name: volumeIdentity, MountPath: dirIdentity, ReadOnly: true},
		{Name: volumeState, MountPath: dirState},
	}
	if e.settings.KafkaSecret != "" {
		out = append(out, corev1.VolumeMount{Name: volumeKafka, MountPath: dirKafka, ReadOnly: true})
	}
	if c.unix() {
		out = append(out, corev1.VolumeMount{Name: volumeRun, MountPath: dirRun})
	}
	return out
}

// proxyMount is what a container that asks gets. A socket can be connected to through a read-only mount,
// and not be replaced by another.
func proxyMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: volumeRun, MountPath: dirRun, ReadOnly: true}
}
