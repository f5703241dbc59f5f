package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// board is a dashboard of the schema's first version: what Grafana reads from a file. The second is its API's alone.
type board = dashboard.DashboardBuilder //nolint:staticcheck // see above

// weir is the one dashboard: what a person on call asks first is at the top, each program below. Rows but the
// first two are folded.
func weir() *board {
	b := dashboard.NewDashboardBuilder("weir"). //nolint:staticcheck // see board
							Uid("weir").
							Description("Global quotas: what is admitted and refused, how exactly, and how weir's own parts are.").
							Tags([]string{"weir"}).
							Time("now-1h", "now").
							Refresh("30s").
							Timezone("browser").
							Tooltip(dashboard.DashboardCursorSyncCrosshair).
							Link(dashboard.NewDashboardLinkBuilder("Runbooks").Type(dashboard.DashboardLinkTypeLink).
								Url("https://github.com/weirproxy/weir/blob/main/docs/runbooks.md").TargetBlank(true)).
							WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
							WithVariable(choice("namespace", "Namespace of the pods", "label_values(weir_sidecar_ready, namespace)")).
							WithVariable(choice("policy", "Policy", "label_values(weir_aggregator_limit_fullest_ratio, policy)"))
	for i, r := range []row{overview(), limits(), freshness(), sidecars(), aggregators(), stores(), controllers()} {
		r.addTo(b, uint32(100*(i+1)), i >= 2)
	}
	return b
}

// choice is a variable whose values are those that a label has: several, or all.
func choice(name, label, query string) *dashboard.QueryVariableBuilder {
	return dashboard.NewQueryVariableBuilder(name).Label(label).
		Datasource(source()).
		Query(dashboard.StringOrMap{String: &query}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{
			Selected: cog.ToPtr(true),
			Text:     dashboard.StringOrArrayOfString{String: cog.ToPtr("All")},
			Value:    dashboard.StringOrArrayOfString{String: cog.ToPtr("$__all")},
		})
}

// source is the Prometheus that is chosen at the top.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}
