#!/usr/bin/env bash
# Runs every fuzz target of the module for a while, one after the other (go
# test takes one at a time).
#
#   tools/fuzz.sh [TIME]     TIME as go test's -fuzztime, 20s by default
set -euo pipefail
cd "$(dirname "$0")/.."

readonly go=${GO:-go} time=${1:-20s}

"$go" list -f '{{.Dir}} {{.ImportPath}}' ./... | while read -r dir package; do
	{ grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go 2>/dev/null || true; } | sort -u |
		while read -r _ target; do
			"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" </dev/null
		done
done
