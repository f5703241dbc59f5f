package obs

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

type graph struct {
	Title   string
	Panels  []graph
	Targets []struct{ Expr, LegendFormat string }
}

// graphs are the panels of the chart's dashboard, those of folded rows among them, and its variables' queries.
func graphs(t *testing.T) (panels []graph, variables []string) {
	t.Helper()
	b, err := os.ReadFile(chart + "/dashboards/weir.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels     []graph
		Templating struct {
			List []struct{ Type, Query string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		panels = append(append(panels, p), p.Panels...)
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			variables = append(variables, v.Query)
		}
	}
	return panels, variables
}

// grafana are the variables that Grafana puts values in for before it asks.
var grafana = strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*", "$policy", ".*")

var legend = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

func TestThePanelsAskForWhatProgramsHave(t *testing.T) {
	c := known(t)
	panels, _ := graphs(t)
	queries := 0
	for _, p := range panels {
		for _, q := range p.Targets {
			queries++
			has, err := c.check(grafana.Replace(q.Expr))
			if err != nil {
				t.Errorf("%q: %v", p.Title, err)
				continue
			}
			for _, m := range legend.FindAllStringSubmatch(q.LegendFormat, -1) {
				if !has[m[1]] {
					t.Errorf("%q: its series are called by %s, which they are without: %v", p.Title, m[1], has)
				}
			}
		}
	}
	if queries < 50 {
		t.Errorf("only %d queries were read", queries)
	}
}

var labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

func TestTheVariablesAskForWhatProgramsHave(t *testing.T) {
	c := known(t)
	_, variables := graphs(t)
	if len(variables) != 2 {
		t.Fatalf("variables %q", variables)
	}
	for _, v := range variables {
		m := labelValues.FindStringSubmatch(v)
		if m == nil {
			t.Fatalf("%s does not read as expected", v)
		}
		if has, err := c.labelsOf(m[1]); err != nil || !has[m[2]] {
			t.Errorf("%s: %v, labels %v", v, err, has)
		}
	}
}
