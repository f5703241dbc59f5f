# The reference page and flags' help, made from api/config (included by the Makefile).

##@ Documentation

.PHONY: docs
docs: ## Make docs/reference/configuration.md and api/config/docs.go anew
	$(GO) generate ./api/config

generate: docs
