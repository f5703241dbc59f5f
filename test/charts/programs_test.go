package charts

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/api/config"
	"github.com/weirproxy/weir/internal/configfile"
	"github.com/weirproxy/weir/internal/inject"
)

// The programs accept the configuration files that the chart writes, with the flags that it gives, and each file that
// those name is mounted.
func TestTheProgramsAcceptTheirConfiguration(t *testing.T) {
	bin := build(t, "weir-aggregator", "weir-controller")
	eachSet(t, func(t *testing.T, all map[string]*unstructured.Unstructured) {
		for id, pod := range pods(t, all) {
			c := pod.Spec.Containers[0]
			file := configOf(c)
			root := materialise(t, all, pod, c)
			for _, named := range filesIn(t, filepath.Join(root, file)) {
				if _, err := os.Stat(filepath.Join(root, named)); err != nil {
					t.Errorf("%s: %s names %s, which nothing mounts", id, file, named)
				}
			}
			if id == "Pod/weir-check" {
				acceptsCheck(t, filepath.Join(root, file))
				continue
			}
			program := filepath.Join(bin, c.Command[0])
			out, err := exec.CommandContext(t.Context(), program, "validate", "--config", rooted(t, root, file)).CombinedOutput()
			if strings.HasPrefix(id, "Job/") { // it has no Redis and no key, which validate asks for
				out, err = exec.CommandContext(t.Context(), program, "topics", "ensure", "--timeout", "1ms", "--config", rooted(t, root, file)).CombinedOutput()
				if !strings.Contains(string(out), "connect to Kafka") {
					t.Errorf("%s: %v\n%s", id, err, out)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", id, err, out)
			}
		}
	})
}

// The injector's settings are valid, and a pod that they inject gets what the values say.
func TestTheInjectorAcceptsItsSettings(t *testing.T) {
	eachSet(t, func(t *testing.T, all map[string]*unstructured.Unstructured) {
		acceptsSettings(t, all)
	})
}

// acceptsSettings holds the injector's settings against their type and rules.
func acceptsSettings(t *testing.T, all map[string]*unstructured.Unstructured) {
	t.Helper()
	text, found, err := unstructured.NestedString(all["ConfigMap/weir-injector"].Object, "data", "settings.yaml")
	if err != nil || !found {
		t.Fatal(err)
	}
	s := inject.DefaultSettings()
	if err := inject.ReadSettings("settings.yaml", []byte(text), &s); err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

// acceptsCheck holds what weir check would read against its type.
func acceptsCheck(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := config.DefaultCheck()
	if err := configfile.Decode(file, text, &c); err != nil || len(c.Kafka.Brokers) == 0 || len(c.Redis.Addresses) == 0 {
		t.Errorf("%+v: %v", c, err)
	}
}

// build makes programs of the main module and returns their directory.
func build(t *testing.T, programs ...string) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"build", "-o", dir + "/"}
	for _, p := range programs {
		args = append(args, "./cmd/"+p)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "go", args...)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir
}

// configOf is the configuration file that a container is started with.
func configOf(c corev1.Container) string {
	for i, a := range c.Args {
		if a == "--config" {
			return c.Args[i+1]
		}
		if file, ok := strings.CutPrefix(a, "--config="); ok {
			return file
		}
	}
	return ""
}

// materialise writes what the container would see below a directory: ConfigMaps as they are, Secrets with a file for each
// key that is known of them.
func materialise(t *testing.T, all map[string]*unstructured.Unstructured, pod corev1.PodTemplateSpec, c corev1.Container) string {
	t.Helper()
	root := t.TempDir()
	for _, m := range c.VolumeMounts {
		for _, v := range pod.Spec.Volumes {
			if v.Name != m.Name {
				continue
			}
			for name, text := range contents(all, v) {
				file := filepath.Join(root, m.MountPath, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return root
}

// secretKeys are the keys that the users' own Secrets have in the sets of values.
var secretKeys = []string{"identity.key", "key", "ca.crt", "tls.crt", "tls.key", "password", "sentinel-password", "redis-password", "token"}

func contents(all map[string]*unstructured.Unstructured, v corev1.Volume) map[string]string {
	out := map[string]string{}
	if v.Secret != nil {
		for _, k := range secretKeys {
			out[k] = strings.Repeat("k", 32)
		}
	}
	if v.ConfigMap != nil && all["ConfigMap/"+v.ConfigMap.Name] != nil {
		out, _, _ = unstructured.NestedStringMap(all["ConfigMap/"+v.ConfigMap.Name].Object, "data")
	}
	return out
}

// filesIn are the absolute paths that a configuration file names.
func filesIn(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return paths(v)
}

func paths(v any) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			out = append(out, paths(x)...)
		}
	case []any:
		for _, x := range v {
			out = append(out, paths(x)...)
		}
	case string:
		if strings.HasPrefix(v, "/") {
			out = append(out, v)
		}
	}
	return out
}

// rooted is a copy of a configuration file whose paths are below root.
func rooted(t *testing.T, root, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(root, filepath.Base(file))
	if err := os.WriteFile(copied, []byte(strings.ReplaceAll(string(text), "/etc/weir/", root+"/etc/weir/")), 0o600); err != nil {
		t.Fatal(err)
	}
	return copied
}
