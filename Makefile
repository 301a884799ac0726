# Everything a developer runs. "make help" lists it. Tools are installed into .cache, in the versions named here.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GOLANGCI_VERSION := v2.15.0
FUZZTIME ?= 100000x
CHURN ?= 2m
CONFIG ?=
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)

CACHE := $(CURDIR)/.cache
NPM := $(CACHE)/npm
GOLANGCI := $(CACHE)/bin/golangci-lint-$(GOLANGCI_VERSION)
BIN := $(CURDIR)/bin/mcp-proxy
GOFILES = $(shell git ls-files --cached --others --exclude-standard '*.go')

.PHONY: help run build cross test race smoke bench bench-once lint vet fmt fmt-check mod-check npm conformance \
	conformance-direct interop churn fuzz ci clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## run the proxy: the demo, or CONFIG=FILE
	$(BIN) serve $(if $(CONFIG),--config $(CONFIG),--demo)

build: ## build the static binary bin/mcp-proxy
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN) ./cmd/mcp-proxy

cross: ## compile for the other systems
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/mcp-proxy
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go build -o /dev/null ./cmd/mcp-proxy
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build -o /dev/null ./cmd/mcp-proxy

test: ## run the tests
	go test ./...

race: ## run the tests under the race detector
	go test -race ./...

smoke: build ## start and stop the binary, and check what the image relies on
	MCP_PROXY_SMOKE=1 MCP_PROXY_BIN=$(BIN) go test -count=1 -v ./test/smoke

bench: ## measure the proxy against a plain reverse proxy
	go run ./bench

bench-once: ## run every Go benchmark once
	go test -run '^$$' -bench . -benchtime 1x ./...

lint: vet $(GOLANGCI) ## run go vet and golangci-lint
	$(GOLANGCI) run ./...

vet:
	go vet ./...

fmt: ## format all Go files
	gofmt -w $(GOFILES)

fmt-check: ## fail if a Go file is not formatted
	@files="$$(gofmt -l $(GOFILES))"; \
	if [[ -n "$$files" ]]; then printf 'not formatted, run make fmt:\n%s\n' "$$files"; exit 1; fi

mod-check: ## fail if go.mod is not tidy or a module was changed
	go mod tidy -diff
	go mod verify

npm: $(NPM)/.installed ## install the npm packages of the tests

conformance: npm build ## run the official conformance suite directly and through the proxy
	MCP_PROXY_BIN=$(BIN) go run ./test/conformance -npm $(NPM) -table $(CACHE)/conformance.md

conformance-direct: npm ## run the official conformance suite against the reference server alone
	go run ./test/conformance -npm $(NPM) -direct-only

interop: npm build ## let servers and clients of others meet through the proxy
	MCP_PROXY_INTEROP=$(NPM) MCP_PROXY_BIN=$(BIN) go test -count=1 -v -timeout 15m ./test/interop

churn: ## for CHURN, kill, freeze and reconfigure forty servers under fifty clients, and look for what is left over
	CHURN=$(CHURN) go test -race -count=1 -v -timeout 60m ./test/churn

fuzz: ## run every fuzz target up to FUZZTIME, a time or a number of inputs (10000x)
	scripts/fuzz $(FUZZTIME)

ci: ## run all that is run for a submission
	.ci/run

clean: ## remove what was built and installed
	rm -rf bin .cache

$(GOLANGCI):
	mkdir -p $(CACHE)/bin
	GOBIN=$(CACHE)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(CACHE)/bin/golangci-lint $@

$(NPM)/.installed: test/npm/package.json test/npm/package-lock.json test/npm/.npmrc
	mkdir -p $(NPM)
	cp $^ $(NPM)/
	# Not "npm ci": it refuses a lock file when a package for another system, which nobody installs, does not exist.
	cd $(NPM) && npm install --ignore-scripts --loglevel=error
	touch $@
