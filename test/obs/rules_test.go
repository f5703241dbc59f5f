package obs

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/weirproxy/weir/test/obs/chart"
)

// chartFiles is the chart's folder of what it hands on as it is.
const chartFiles = "../../charts/weir/files"

func alerts(t *testing.T) []chart.Alert {
	t.Helper()
	all, err := chart.Alerts(chartFiles)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func cases(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/rules/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no tests of rules: %v", err)
	}
	return paths
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

var templated = regexp.MustCompile(`\$labels\.(\w+)`)

func TestAlertsAskForWhatProgramsHave(t *testing.T) {
	c := known(t)
	for _, a := range alerts(t) {
		has, err := c.check(a.Expr)
		if err != nil {
			t.Errorf("%s: %v", a.Alert, err)
			continue
		}
		for key, text := range a.Annotations {
			for _, m := range templated.FindAllStringSubmatch(text, -1) {
				if !has[m[1]] {
					t.Errorf("%s: its %s names the label %s, which its series are without: %v", a.Alert, key, m[1], has)
				}
			}
		}
	}
}

func TestAlertsSayWhatPeopleNeed(t *testing.T) {
	names := map[string]bool{}
	for _, a := range alerts(t) {
		if names[a.Alert] || !strings.HasPrefix(a.Alert, "Weir") {
			t.Errorf("%s: there twice, or not called after weir", a.Alert)
		}
		names[a.Alert] = true
		if s := a.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity %q", a.Alert, s)
		}
		want := "https://github.com/weirproxy/weir/blob/main/docs/runbooks.md#" + strings.ToLower(a.Alert)
		if a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %q", a.Alert, a.Annotations["runbook_url"], want)
		}
		for _, key := range []string{"summary", "description"} {
			if text := a.Annotations[key]; !strings.HasSuffix(text, ".") || strings.Contains(text, "\n") {
				t.Errorf("%s: its %s is no sentence of one line: %q", a.Alert, key, text)
			}
		}
	}
}

// promtool is that of make prometheus, or the one on PATH.
func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	program, err := filepath.Abs("../../.tools/bin/promtool")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("promtool"); err != nil {
			t.Skip("no promtool: make prometheus")
		}
	}
	if out, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
}

func TestPromtoolTakesTheRules(t *testing.T) {
	paths, err := chart.AlertFiles(chartFiles)
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, append([]string{"check", "rules", "--lint-fatal"}, paths...)...)
}

func TestAlertsFireAndDoNot(t *testing.T) {
	promtool(t, append([]string{"test", "rules"}, cases(t)...)...)
}

// Each alert has a case in which it fires, and a moment in which it is held to be silent.
func TestEachAlertIsTestedBothWays(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, path := range cases(t) {
		var f struct {
			Tests []struct {
				Cases []struct {
					Expr     string
					Expected []struct{ Labels string } `yaml:"exp_samples"`
				} `yaml:"promql_expr_test"`
			}
		}
		read(t, path, &f)
		for _, test := range f.Tests {
			for _, c := range test.Cases {
				for _, s := range c.Expected {
					fires[alertName(t, s.Labels)] = true
				}
				if name := alertName(t, c.Expr); len(c.Expected) == 0 {
					silent[name] = true
				}
			}
		}
	}
	for _, a := range alerts(t) {
		if !fires[a.Alert] || !silent[a.Alert] && !silent[""] {
			t.Errorf("%s: fires in a test: %v; is silent in one: %v", a.Alert, fires[a.Alert], silent[a.Alert])
		}
		delete(fires, a.Alert)
	}
	if len(fires) > 0 {
		t.Errorf("tests of alerts that are not there: %v", slices.Sorted(maps.Keys(fires)))
	}
}

// alertName is what a selector of ALERTS asks for; "": all.
func alertName(t *testing.T, selector string) string {
	t.Helper()
	matchers, err := parser.NewParser(parser.Options{}).ParseMetricSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range matchers {
		if m.Name == "alertname" {
			return m.Value
		}
	}
	return ""
}
