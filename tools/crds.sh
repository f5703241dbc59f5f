#!/usr/bin/env bash
# Makes the CustomResourceDefinition of QuotaPolicy and the deep copies of its
# types from the Go types of api/v1alpha1, and the controller's rights from the
# markers beside the code that needs them.
#
#   tools/crds.sh CONTROLLER_GEN          writes them
#   tools/crds.sh CONTROLLER_GEN -check   fails if they are out of date
set -euo pipefail

readonly gen=$1 check=${2:-}
readonly crds=charts/weir-crds/templates
readonly rules=charts/weir/files/controller-rules.yaml
new=$(mktemp -d)
readonly new
trap 'rm -rf "$new"' EXIT

# Floats are "dangerous" to tools that round them; fallbackFloor is a part of
# a share, where that does not matter.
"$gen" crd:allowDangerousTypes=true paths=./api/v1alpha1/kube "output:crd:dir=$new"
for types in api/v1alpha1 api/v1alpha1/kube; do
	"$gen" object "paths=./$types" "output:object:dir=$new/$types"
done
# The namespace and the names of Secrets in it are placeholders of the chart's.
"$gen" rbac:roleName=weir-controller,fileName=rules paths=./controller/... "output:rbac:dir=$new/rbac"

stale=0
for made in "$new"/*.yaml "$new"/rbac/rules "$new"/api/v1alpha1/*.go "$new"/api/v1alpha1/kube/*.go; do
	case $made in
	*/rbac/rules) file=$rules ;;
	*.yaml) file=$crds/${made##*/} ;;
	*) file=${made#"$new"/} ;;
	esac
	if [ -z "$check" ]; then
		mkdir -p "$(dirname "$file")"
		cp "$made" "$file"
	elif ! diff -u "$file" "$made"; then
		echo "$file is out of date: run make crds" >&2
		stale=1
	fi
done
exit $stale
