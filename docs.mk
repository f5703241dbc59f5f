# The reference pages and flags' help, made from api/config, the metrics' packages and the commands
# (included by the Makefile).

##@ Documentation

.PHONY: docs
docs: ## Make docs/reference/ and api/config/docs.go anew
	$(GO) generate ./api/config
	$(GO) test -count=1 -run TestTheCommandReferenceIsCurrent ./cmd/... -update

generate: docs
