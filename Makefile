VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
GO      ?= go
FUZZTIME ?= 20s

# bench is a module of its own: go.work.
ALL = ./... ./bench/...

# Without C in net and os/user the command is static: fleet/privateroot runs it where no shared
# libraries are.
export GOFLAGS := $(GOFLAGS) -tags=netgo,osusergo

GOBUILD = GOWORK=off $(GO) build -trimpath -buildvcs=false -ldflags '-X main.release=$(VERSION)'

.PHONY: build release release-check demo test stress matrix race identity causes cases malloc containers schedules schedules-hunt schedules-states clusters truth truth-quick truth-small truth-threads truth-headlines gitea fuzz bench bench-collect bench-delta bench-fleet bench-heap bench-hunt bench-nightly bench-points bench-record bench-trace lint generate compile-commands man setup-test clean bench-turns flow-oracle bench-flow

build: bin/diagnose

.PHONY: bin/diagnose
bin/diagnose:
	$(GOBUILD) -o $@ ./cmd/diagnose

# A tarball with a static binary that brings the agent's libraries along: for any x86-64
# Linux with glibc 2.18 or newer, without a compiler.
RELEASE = diagnose-$(VERSION)-linux-x86_64
release:
	scripts/setup release
	$(MAKE) --no-print-directory build man
	bin/diagnose agent export agent/prebuilt
	rm -rf bin/release
	mkdir -p bin/release/$(RELEASE)
	CGO_ENABLED=0 $(GOBUILD) -tags embedagent -o bin/release/$(RELEASE)/diagnose ./cmd/diagnose
	cp -r README.md docs bin/man bin/release/$(RELEASE)
	tar -C bin/release -czf bin/release/$(RELEASE).tar.gz $(RELEASE)

# The release in roots of Debian 11, 12, 13 and Ubuntu 22.04, which debootstrap makes.
release-check: release
	scripts/release-check bin/release/$(RELEASE).tar.gz

# Crashes and records the programs of docs/examples and prints the reports: a second each.
demo:
	scripts/setup demo
	$(GOBUILD) -tags nocorpus -o bin/demo/diagnose ./cmd/diagnose
	scripts/demo bin/demo/diagnose

setup-test:
	scripts/setup test

test: setup-test lint
	scripts/with-cores $(GO) test -timeout 60m $(ALL)

# The allocator's threads for a minute, in part of it with checks beside them.
stress: setup-test
	DIAGNOSE_STRESS=60s $(GO) test -timeout 10m -count 1 -run TestAllocatorStress ./agent

# Every crash program in every variant, where test takes two of each.
matrix: setup-test
	DIAGNOSE_MATRIX=full scripts/with-cores $(GO) test -timeout 60m $(ALL)

race: setup-test
	scripts/with-cores $(GO) test -race -timeout 60m $(ALL)

# Real programs, recorded and replayed 20 times: docs/recording-identity.md. RACES=turns records them so.
identity: setup-test
	DIAGNOSE_IDENTITY=20 DIAGNOSE_IDENTITY_RACES=$(RACES) $(GO) test -timeout 60m -count 1 -v -run TestIdentity ./internal/realprograms

# Delta and patterns over ten million accesses: two minutes.
bench-delta:
	$(GO) run ./bench/delta

# The programs with known causes, all of them at each level: docs/causes-programs.md.
causes: setup-test
	DIAGNOSE_MATRIX=full DIAGNOSE_CAUSES=$(CURDIR)/docs/causes-programs.md $(GO) test -timeout 60m -count 1 -run TestCorpus ./diagnosis/verdict

# The programs that have shown a shortfall, all variants of each: docs/cases.md. 'test' runs the
# quick ones.
cases: setup-test
	DIAGNOSE_MATRIX=full DIAGNOSE_CASES=$(CURDIR)/docs/cases.md scripts/with-cores $(GO) test -timeout 90m -count 1 -v -run TestCases ./internal/cases

# Misuses of the heap in plain cores, with the installed glibc and those of GLIBC: docs/malloc.md.
malloc: setup-test
	DIAGNOSE_MATRIX=full DIAGNOSE_GLIBC="$(GLIBC)" scripts/with-cores $(GO) test -timeout 60m -count 1 -v -run 'TestMalloc$$' ./diagnosis/driver

# Containers of the C++ library in plain cores and under the agent: docs/containers.md.
containers: setup-test
	DIAGNOSE_MATRIX=full DIAGNOSE_CONTAINERS=$(CURDIR)/docs/containers.md scripts/with-cores $(GO) test -timeout 60m -count 1 -v -run 'TestContainers$$' ./diagnosis/driver

# The search of schedules on programs whose threads meet in memory: docs/schedules.md.
schedules: setup-test
	DIAGNOSE_SCHEDULES=$(CURDIR)/docs/schedules.md $(GO) test -timeout 60m -count 1 -run TestCorpus ./replay/explore

# Whether searches end at the recorded state, for ten programs: docs/schedules.md. Up to twenty minutes.
schedules-states: setup-test
	DIAGNOSE_STATES=$(CURDIR)/docs/schedules.md $(GO) test -timeout 90m -count 1 -v -run TestStates ./replay/explore

# Failures of the programs with known causes, grouped, and the groups scored against
# the causes: docs/clusters.md.
clusters: setup-test
	DIAGNOSE_CLUSTERS=$(CURDIR)/docs/clusters.md $(GO) test -timeout 120m -count 1 -v -run 'TestClusters$$' ./bench/nightly

# Causes of bugs that are put at random into real programs: docs/truth.md. The first time it
# fetches and builds the programs; SHARD=2/8 is a part of the mutants. SEARCH=20 first searches
# for mutants, until each program has 20.
truth:
	scripts/setup truth
	scripts/with-cores nice -n 10 $(GO) run ./bench/truth -shard '$(SHARD)' -search $(or $(SEARCH),0)

# 60 of its recordings, in ten minutes.
truth-quick:
	nice -n 10 $(GO) run ./bench/truth -quick

# Causes of bugs in small programs that are made from seeds: docs/truth-small.md. What was judged is kept;
# SEEDS=1200 is how many.
truth-small:
	scripts/setup truth
	nice -n 10 $(GO) run ./bench/truth/small -seeds $(or $(SEEDS),900)

# Causes of bugs of threads in programs that are recorded in many schedules: docs/truth-threads.md, an hour;
# RUNS=10 is how many recordings are made of each build in each way.
truth-threads:
	scripts/setup truth
	nice -n 10 $(GO) run ./bench/truth/threads -runs $(or $(RUNS),24)

# How often each kind of headline is right, over its recordings: docs/truth-headlines.md, half an hour.
truth-headlines:
	nice -n 10 $(GO) run ./bench/truth -headlines docs/truth-headlines.md

# What a corpus and a night over it take as the corpus grows, on its own: docs/clusters.md,
# at most ten minutes.
bench-nightly: setup-test
	DIAGNOSE_GROWTH=$(CURDIR)/docs/clusters.md $(GO) test -timeout 60m -count 1 -v -run 'TestGrowth$$' ./bench/nightly

# Nights with workers in network namespaces, as root: docs/fleet.md. Half an hour.
bench-fleet:
	$(GO) run ./bench/fleet speed
	$(GO) run ./bench/fleet faults

# Nights that tell a real Gitea, which is built first: docs/trackers.md.
gitea: setup-test
	scripts/gitea bin/gitea
	DIAGNOSE_GITEA=$(CURDIR)/bin/gitea $(GO) test -timeout 10m -count 1 -v -run TestNightlyGitea ./cmd/diagnose

# How soon hunting finds the bugs of the concurrency programs, against running them
# again and again: docs/schedules.md, a quarter of an hour.
schedules-hunt: build
	$(GO) run ./bench/schedule -table docs/schedules.md

lint:
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not formatted: $$unformatted"; exit 1; }
	$(GO) vet $(ALL)
	$(GO) tool staticcheck $(ALL)
	$(GO) run ./internal/plainenglish

# Every fuzz target for FUZZTIME.
fuzz:
	scripts/fuzz $(FUZZTIME)

bench:
	scripts/setup bench
	$(MAKE) --no-print-directory build
	$(GO) run ./bench

# The agent beside other allocators, on its own: it takes half an hour.
bench-heap:
	scripts/setup bench
	$(GO) run ./bench/heap

# What recording and replaying cost, on its own: it takes twenty minutes.
bench-record:
	scripts/setup bench
	$(GO) run ./bench/record

# What collecting cores costs: a minute.
bench-collect: build
	$(GO) run ./bench/collect

# What points of instrumented programs cost: a minute.
bench-points: build
	$(GO) run ./bench/points

# Schedules per second of a hunt: half a minute.
bench-hunt:
	$(GO) run ./bench/schedule

# What tracing accesses costs, beside gdb: it takes some minutes.
bench-trace: build
	$(GO) run ./bench/trace

# How often programs with races fail in turns, and what turns cost: ten minutes.
bench-turns:
	$(GO) run ./bench/turns
	$(GO) run ./bench/turns -cost

# Instructions executed in copies of the code compared with single steps, of all programs: docs/flow.md.
flow-oracle: setup-test
	DIAGNOSE_MATRIX=full $(GO) test -timeout 60m -count 1 -v -run TestAhead ./replay

# What tracing each instruction costs: docs/flow.md.
bench-flow: build
	$(GO) run ./bench/flow

# For editors with clangd: how each C file of the agent is parsed by itself.
compile-commands:
	scripts/compile-commands

generate:
	$(GO) generate ./...

# The pages bear the date of the last commit, so that they can be made again.
man: build
	mkdir -p bin/man
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || date +%s) bin/diagnose man bin/man

clean:
	rm -rf bin
