package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Panel of the dashboard. Row is the heading that it stands under.
type Panel struct {
	Title, Row string
	Queries    []Query
}

// Query of a panel, as Grafana has it: with its variables. Legend names the series: "{{pod}}".
type Query struct {
	Expr   string
	Legend string `json:"legendFormat"`
}

// PromQL is what Grafana would ask, everything chosen, with rates over the interval.
func (q Query) PromQL(interval string) string {
	return strings.NewReplacer("$__rate_interval", interval, "$namespace", ".*", "$policy", ".*").Replace(q.Expr)
}

// placed is a panel or a row in the dashboard's file. A folded row holds its panels, others are followed by them.
type placed struct {
	Type, Title string
	Panels      []placed
	Targets     []Query
}

// Dashboard reads the panels, those of folded rows among them, and the queries of the variables.
func Dashboard(files string) (panels []Panel, variables []string, err error) {
	path := filepath.Join(files, "dashboards", "weir.json")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	var d struct {
		Panels     []placed
		Templating struct {
			List []struct{ Type, Query string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			variables = append(variables, v.Query)
		}
	}
	row := ""
	for _, p := range d.Panels {
		if p.Type != "row" {
			panels = append(panels, Panel{p.Title, row, p.Targets})
			continue
		}
		row = p.Title
		for _, in := range p.Panels {
			panels = append(panels, Panel{in.Title, row, in.Targets})
		}
	}
	return panels, variables, nil
}
