// Makes charts/weir/files/dashboards. A module of its own, so that what describes Grafana's panels moves no
// version of the other tools.
module github.com/weirproxy/weir/tools/dashboard

go 1.26.0

require github.com/grafana/grafana-foundation-sdk/go v0.0.22
