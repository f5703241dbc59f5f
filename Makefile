# weir: how it is built, generated and tested. `make help` lists the targets.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO    ?= go
TOOLS := .tools
BIN   := $(TOOLS)/bin

PROTOS := $(wildcard api/wire/v1/*.proto)

##@ Generated code

.PHONY: generate
generate: $(BIN)/protogen $(BIN)/protoc-gen-go ## Make api/wire/v1/*.pb.go anew from the .proto files
	$(BIN)/protogen -plugin $(BIN)/protoc-gen-go $(PROTOS)

.PHONY: generate-check
generate-check: $(BIN)/protogen $(BIN)/protoc-gen-go ## Fail if generated code is out of date
	$(BIN)/protogen -check -plugin $(BIN)/protoc-gen-go $(PROTOS)

# What tools/go.mod pins decides when a tool is built anew.
$(BIN)/protogen: tools/go.mod tools/go.sum $(wildcard tools/protogen/*.go)
	cd tools && $(GO) build -o ../$@ ./protogen && touch ../$@

$(BIN)/protoc-gen-go: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../$@ google.golang.org/protobuf/cmd/protoc-gen-go && touch ../$@

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
