package charts

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// The values that the docs show are taken by the chart and its injector, beside what every installation has to give.
func TestDocumentedValuesAreTaken(t *testing.T) {
	for page, least := range map[string]int{"install.md": 4, "kubernetes.md": 1, "operate.md": 1} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		taken := 0
		for _, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			shown := map[string]any{}
			if err := yaml.Unmarshal([]byte(block[1]), &shown); err != nil || !ofTheChart(shown) {
				continue
			}
			minimal, err := Values("minimal")
			if err != nil {
				t.Fatal(err)
			}
			files, err := Render(util.CoalesceTables(shown, minimal), sets["minimal"])
			if err != nil {
				t.Errorf("%s: %v\n%s", page, err, block[1])
				continue
			}
			list, err := files.Objects()
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range list {
				if o.GetName() == "weir-injector" && o.GetKind() == "ConfigMap" {
					acceptsSettings(t, map[string]*unstructured.Unstructured{"ConfigMap/weir-injector": o})
				}
			}
			taken++
		}
		if taken < least {
			t.Errorf("%s shows %d sets of values, want %d at least", page, taken, least)
		}
	}
}

// ofTheChart is whether a document looks like values of this chart: all its keys are there.
func ofTheChart(document map[string]any) bool {
	defaults, err := os.ReadFile(Dir + "/values.yaml")
	for key := range document {
		if err != nil || !strings.Contains(string(defaults), "\n"+key+":") {
			return false
		}
	}
	return len(document) > 0
}
