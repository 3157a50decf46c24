VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GO      ?= go
FUZZTIME ?= 20s

.PHONY: build demo test race fuzz bench lint generate man setup-test clean

build: bin/diagnose

.PHONY: bin/diagnose
bin/diagnose:
	$(GO) build -trimpath -ldflags '-X main.release=$(VERSION)' -o $@ ./cmd/diagnose

# Crashes the shipped example for real and prints its report.
demo:
	scripts/setup demo
	$(MAKE) --no-print-directory build
	scripts/demo

setup-test:
	scripts/setup test

test: setup-test lint
	$(GO) test -timeout 20m ./...

race: setup-test
	$(GO) test -race -timeout 60m ./...

lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "not formatted: $$unformatted"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

# Every fuzz target for FUZZTIME.
fuzz:
	scripts/fuzz $(FUZZTIME)

bench:
	scripts/setup bench
	$(MAKE) --no-print-directory build
	$(GO) run ./bench

generate:
	$(GO) generate ./...

man: build
	mkdir -p bin/man
	bin/diagnose man bin/man

clean:
	rm -rf bin
