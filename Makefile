# A menu. Each target is a line that also works by hand; run "make" to read it.
.DEFAULT_GOAL := help
.PHONY: help build test race lint fuzz bench bench-router bench-router-enforce bench-faults bench-isolation bench-publish bench-shuffle crash interop demo docs

# How long each fuzz function runs, which benchmarks, and how often the control
# plane is killed: make fuzz FOR=1m, make bench RUN=Lookup, make crash KILLS=100.
# make interop STRICT=-strict fails where a client is not installed.
FOR ?= 10s
RUN ?= .
KILLS ?= 60

# Flags for the benches: make bench-router ARGS='-rounds 3 -o json'
ARGS ?=

help: ## this menu
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-21s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the commands, into bin/
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

test: ## every test, with the race detector; what CI runs
	go test -race -shuffle=on -count=1 -timeout=10m ./...

race: ## the tests of what runs at once, many times over, on 1, 2 and 4 threads
	go test -race -shuffle=on -count=5 -cpu=1,2,4 -short -timeout=30m $$(tools/concurrent.sh)

lint: ## gofmt, vet, modernizers, staticcheck, known vulnerabilities, shell scripts
	tools/lint.sh

fuzz: ## each fuzz function for a little while (FOR=10s)
	tools/fuzz.sh $(FOR)

bench: ## the named benchmarks (RUN=Lookup for some of them)
	go test -run='^$$' -bench='$(RUN)' -benchmem ./...

bench-router: ## what a request costs, beside nginx, HAProxy, Caddy (installs, builds what is missing; ARGS=-h)
	go run ./bench/router -install $(ARGS)

bench-router-enforce: ## the same, with maps of 100 and 1,000,000 keys; fails if a budget is missed
	go run ./bench/router -install -enforce -sizes 100,1000000 $(ARGS)

bench-faults: ## what real faults of cells and clients do to the router and to other cells (ARGS=-h)
	go run ./bench/faults $(ARGS)

bench-isolation: ## what one bad cell does to the requests of others (ARGS=-h)
	go run ./bench/isolation $(ARGS)

bench-publish: ## how soon a change of the map is at 100 routers (ARGS=-h)
	go run ./bench/publish $(ARGS)

bench-shuffle: ## what dealing a hand costs, beside Kubernetes' dealer, dskit's ring, Python's sample (ARGS=-h)
	go -C bench/shuffle run . $(ARGS)

crash: ## a control plane at work is killed over and over (KILLS=60)
	go test -race -count=1 -v -timeout=30m ./internal/crashtest -kills $(KILLS)
	CELLWAY_KILLS=$(KILLS) go test -race -count=1 -timeout=30m -run=TestKilled ./internal/store/sqlitestore

interop: ## real clients against the router: gRPC, WebSocket, curl, wrk, h2load, h2spec, Chromium
	go -C interop test -count=1 -timeout=15m ./... $(STRICT)

demo: ## a whole fleet on this machine, with things going wrong in it
	go run ./cmd/cellway demo

docs: ## commands and links in the documents, and the pages made from code
	go test -count=1 -timeout=10m -run='^TestDocs' .
