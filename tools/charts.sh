#!/usr/bin/env bash
# Makes values.schema.json and README.md of charts/weir from its values.yaml.
#
#   tools/charts.sh VALUESSCHEMA HELM_DOCS          writes them
#   tools/charts.sh VALUESSCHEMA HELM_DOCS -check   fails if they are out of date
set -euo pipefail

readonly schema=$1 docs=$2 check=${3:-}
readonly chart=charts/weir
readonly options=(--chart-search-root charts --chart-to-generate "$chart" --sort-values-order file --log-level error)

if [ -z "$check" ]; then
	"$schema" "$chart"
	"$docs" "${options[@]}"
	exit
fi
"$schema" -check "$chart"
if ! "$docs" "${options[@]}" --dry-run | diff -u "$chart/README.md" -; then
	echo "$chart/README.md is out of date: run make charts" >&2
	exit 1
fi
