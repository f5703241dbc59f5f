package obs

import (
	"regexp"
	"testing"

	"github.com/weirproxy/weir/test/obs/chart"
)

func dashboard(t *testing.T) (panels []chart.Panel, variables []string) {
	t.Helper()
	panels, variables, err := chart.Dashboard(chartFiles)
	if err != nil {
		t.Fatal(err)
	}
	return panels, variables
}

var legend = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

func TestThePanelsAskForWhatProgramsHave(t *testing.T) {
	c := known(t)
	panels, _ := dashboard(t)
	queries := 0
	for _, p := range panels {
		for _, q := range p.Queries {
			queries++
			has, err := c.check(q.PromQL("5m"))
			if err != nil {
				t.Errorf("%q: %v", p.Title, err)
				continue
			}
			for _, m := range legend.FindAllStringSubmatch(q.Legend, -1) {
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
	_, variables := dashboard(t)
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
