package examples

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weirproxy/weir/test/parts"
)

// files are files of examples/services.
func files(t *testing.T, names ...string) []byte {
	t.Helper()
	root, err := parts.Root()
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, "examples", "services", name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return bytes.Join(all, []byte("---\n"))
}

// container is what these tests look at.
type container struct {
	Name          string
	RestartPolicy string `yaml:"restartPolicy"`
	Command       []string
	VolumeMounts  []struct{ Name string } `yaml:"volumeMounts"`
}

func (c container) mounts(name string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m struct{ Name string }) bool { return m.Name == name })
}

type deployment struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				InitContainers []container `yaml:"initContainers"`
				Containers     []container
			}
		}
	}
}

// theDeployment is the one of a stream.
func theDeployment(t *testing.T, stream []byte) deployment {
	t.Helper()
	for d := yaml.NewDecoder(bytes.NewReader(stream)); ; {
		var out deployment
		if err := d.Decode(&out); errors.Is(err, io.EOF) {
			t.Fatal("no Deployment")
		} else if err != nil {
			t.Fatal(err)
		}
		if out.Kind == "Deployment" {
			return out
		}
	}
}

// Each manifest gets its sidecar, for the Service that the policy is on, and only its Envoy gets the socket.
func TestTheManifestsAreInjected(t *testing.T) {
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			cmd := parts.Command(t, "weir", "inject", "-f", "-", "--opt-in", "--report", "--image", "registry.example/weir-sidecar:1", "--kafka-brokers", "kafka:9092")
			cmd.Stdin = bytes.NewReader(files(t, "base/namespace.yaml", "base/service.yaml", l.name+"/deployment.yaml"))
			var report bytes.Buffer
			cmd.Stderr = &report
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, &report)
			}
			if want := "counts for Deployment/hello-" + l.name + " and Service/hello"; !strings.Contains(report.String(), want) {
				t.Errorf("no %q in:\n%s", want, &report)
			}
			pod := theDeployment(t, out).Spec.Template.Spec
			if len(pod.InitContainers) != 1 || pod.InitContainers[0].Name != "weir-sidecar" || pod.InitContainers[0].RestartPolicy != "Always" {
				t.Errorf("no native sidecar: %+v", pod.InitContainers)
			}
			for _, c := range pod.Containers {
				if c.mounts("weir-run") != (c.Name == "envoy") {
					t.Errorf("container %s: the socket is mounted: %v", c.Name, c.mounts("weir-run"))
				}
			}
		})
	}
}

// The container runs what is tested on this machine: the same file, by the same runtime.
func TestTheManifestsRunWhatIsTested(t *testing.T) {
	for _, l := range languages() {
		pod := theDeployment(t, files(t, l.name+"/deployment.yaml")).Spec.Template.Spec
		command := pod.Containers[0].Command
		program := filepath.Base(command[len(command)-1])
		var made struct {
			ConfigMapGenerator []struct {
				Name  string
				Files []string
			} `yaml:"configMapGenerator"`
		}
		if err := yaml.Unmarshal(files(t, l.name+"/kustomization.yaml"), &made); err != nil {
			t.Fatal(err)
		}
		if len(made.ConfigMapGenerator) != 1 || !slices.Equal(made.ConfigMapGenerator[0].Files, []string{program}) || command[0] != l.runtime {
			t.Errorf("%s runs %q, and mounts %v", l.name, command, made.ConfigMapGenerator)
		}
		if len(files(t, l.name+"/"+program)) == 0 {
			t.Errorf("%s is empty", program)
		}
	}
}

func TestThePolicyIsValid(t *testing.T) {
	root, err := parts.Root()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := parts.Command(t, "weir", "validate", filepath.Join(root, servicesPolicy)).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
