package charts

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Dir is the chart's.
const Dir = "../../charts/weir"

// Files are the texts that templates made, by their path within templates/.
type Files map[string]string

// Render is what Helm makes of the chart with values (nil: its own), release weir in namespace weir-system.
func Render(values map[string]any, cluster Cluster) (Files, error) {
	chart, err := loader.LoadDir(Dir)
	if err != nil {
		return nil, err
	}
	release := chartcommon.ReleaseOptions{Name: "weir", Namespace: "weir-system", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, release, nil)
	if err != nil {
		return nil, err
	}
	out, err := engine.RenderWithClientProvider(chart, all, cluster)
	if err != nil {
		return nil, err
	}
	files := make(Files, len(out))
	for name, text := range out {
		files[strings.TrimPrefix(name, path.Join(chart.Name(), "templates")+"/")] = text
	}
	return files, nil
}

// Values reads a set of values, testdata/NAME/values.yaml.
func Values(name string) (map[string]any, error) {
	text, err := os.ReadFile(filepath.Join("testdata", name, "values.yaml"))
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	return values, yaml.Unmarshal(text, &values)
}

// names of the files that hold something, in order.
func (f Files) names() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f)), func(name string) bool {
		return strings.HasPrefix(path.Base(name), "_") || strings.TrimSpace(f[name]) == ""
	})
}

// elsewhere are the templates that show other files of the chart, which have tests of their own: the controller's rules
// (rights_test.go), alerts and the dashboard (test/obs).
var elsewhere = []string{"controller/rbac.yaml", "dashboard.yaml", "prometheusrule.yaml"}

// String is all that was rendered, file after file, but for what is tested elsewhere.
func (f Files) String() string {
	var b strings.Builder
	for _, name := range f.names() {
		if !slices.Contains(elsewhere, name) {
			fmt.Fprintf(&b, "# Source: %s\n---\n%s\n", name, strings.TrimPrefix(strings.TrimSpace(f[name]), "---\n"))
		}
	}
	return b.String()
}

// Objects are the objects of all files but the notes.
func (f Files) Objects() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, name := range f.names() {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(f[name]), 4096)
		for {
			var object map[string]any
			err := d.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if len(object) > 0 {
				out = append(out, &unstructured.Unstructured{Object: object})
			}
		}
	}
	return out, nil
}
