# Quorlease. "make" alone prints what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Tools are built once into .tools with the versions named here. They are not
# in go.mod: whoever imports a package of this module does not inherit them.
TOOLS := $(CURDIR)/.tools
GOLANGCI := $(TOOLS)/golangci-lint-v2.15.0
BUF := $(TOOLS)/buf-v1.75.0
PROTOC_GEN_GO := $(TOOLS)/gen-v1.36.12/protoc-gen-go
PROTOC_GEN_GO_GRPC := $(TOOLS)/gen-grpc-v1.6.2/protoc-gen-go-grpc
PROTOC_GEN_GO_VTPROTO := $(TOOLS)/gen-vtproto-v0.6.1-0.20240319094008-0393e58bdf10/protoc-gen-go-vtproto

# Programs of others that bench measures beside.
PEERS := $(TOOLS)/peers

MODULE := github.com/quorlease/quorlease
PROTOS = $(shell cd api && find quorlease -name '*.proto' | sort)

##@ Build

build: ## Build the quorlease binary, static, into the checkout
	CGO_ENABLED=0 go build -trimpath -o quorlease ./cmd/quorlease

gen: $(PROTOC_GEN_GO) $(PROTOC_GEN_GO_GRPC) $(PROTOC_GEN_GO_VTPROTO) $(TOOLS)/protodeps.binpb ## Generate Go from the .proto files (needs protoc)
	cd api && protoc --descriptor_set_in=$(TOOLS)/protodeps.binpb -I . \
	  --plugin=protoc-gen-go=$(PROTOC_GEN_GO) --go_out=. --go_opt=module=$(MODULE)/api \
	  --plugin=protoc-gen-go-grpc=$(PROTOC_GEN_GO_GRPC) --go-grpc_out=. --go-grpc_opt=module=$(MODULE)/api \
	  --plugin=protoc-gen-go-vtproto=$(PROTOC_GEN_GO_VTPROTO) --go-vtproto_out=. \
	  --go-vtproto_opt=module=$(MODULE)/api,features=marshal+unmarshal+size \
	  $(PROTOS)

fmt: $(GOLANGCI) ## Format all Go files (gofumpt, gci)
	$(GOLANGCI) fmt

##@ Check

test: ## Every test, 10 s a fuzz target, hashes on 386 and arm64 (needs Go, git, make, gcc)
	tools/check.sh test

unit: ## Every test of every package, without the race detector
	tools/check.sh unit

race: ## The packages with goroutines, under the race detector
	tools/check.sh race

fuzz: ## Every fuzz target for FUZZTIME (default 5m)
	tools/check.sh fuzz $(or $(FUZZTIME),5m)

determinism: ## The state machine's hashes on 386 and arm64
	tools/check.sh determinism

e2e: ## The command line against real processes, fresh
	go test -count=1 -timeout 10m ./cmd/...

faults: ## Three real nodes, killed, frozen and restarted under load
	go test -count=1 -timeout 15m -v ./bench

bench: build peers ## Every figure with its bound: one table, page and JSON in .tools; fails where one is missed (ONLY=compare,scale; redis-server; root for shares)
	./quorlease bench all --peers $(PEERS) --require redis-memory,redis-always,ratelimit $(if $(ONLY),--only $(ONLY)) \
	  --html $(TOOLS)/bench.html --json $(TOOLS)/bench.json $(if $(MARKDOWN),--markdown $(MARKDOWN))

peers: $(PEERS)/ratelimit $(PEERS)/gubernator ## The programs of others that Go builds, for bench

failover: ## What 20 leader kills and 3 restarts of everything cost, and that nothing was lost
	go run ./bench/figures failover
	go run ./bench/figures restart

middle: ## 50 leader kills in the middle of waiting, settling, pausing and a retry budget (ROUNDS=50, SEED=1)
	go run ./bench/figures middle -rounds $(or $(ROUNDS),50) -seed $(or $(SEED),1)

powercut: ## The power of all three nodes cut under load, 10 times (ROUNDS): nothing acknowledged is lost (root, Linux)
	unshare -m go run ./bench/figures powercut -rounds $(or $(ROUNDS),10)

grow: ## From three voters to five and back, ROUNDS=20 times under load, a leader killed in each (seven minutes)
	go run ./bench/figures grow -rounds $(or $(ROUNDS),20) -seed $(or $(SEED),1)

soak: ## 200 leader kills that page nobody, 50 lost quorums that everybody is told of once, 100 times grow (an hour)
	go run ./bench/soak
	go run ./bench/figures grow -rounds 100

SEEDS ?= 500
sim: ## Simulations: SEEDS of them (default 500), or one with its trace: make sim SEED=17 (TRAP=T5: with a known mistake)
	tools/check.sh sim $(if $(SEED),-seed $(SEED),-first $(or $(FIRST),0) -seeds $(SEEDS)) $(if $(TRAP),-trap $(TRAP))

sim-long: ## Simulations for a night: 20,000 seeds, other ones each day
	tools/check.sh sim -first $(or $(FIRST),$(shell date +%Y%m%d)00000) -seeds $(or $(LONG),20000)

mission: ## Take away the mechanisms behind ten rows of docs/mission.md, drawn by SEED: their tests must fail (ROWS=0: all)
	go run ./tools/mission break -seed $(or $(SEED),1) -rows $(or $(ROWS),10)

mission-table: ## Write docs/reference/mission.md, which test settles which row
	go run ./tools/mission table >docs/reference/mission.md.new
	mv docs/reference/mission.md.new docs/reference/mission.md

lint: $(GOLANGCI) ## golangci-lint, with the linters that .golangci.yml names
	$(GOLANGCI) run ./...

lint-proto: $(BUF) $(TOOLS)/protodeps.binpb ## buf lint over the .proto files (needs protoc)
	cd api && protoc --descriptor_set_in=$(TOOLS)/protodeps.binpb -I . --include_source_info --include_imports \
	  --descriptor_set_out=$(TOOLS)/api.binpb $(PROTOS)
	$(BUF) lint $(TOOLS)/api.binpb

verify: $(GOLANGCI) ## Generated code, formatting and go.mod are up to date
	$(MAKE) --no-print-directory gen
	git diff --exit-code -- '*.pb.go'
	test -z "$$(git status --porcelain -- '*.pb.go')"
	$(GOLANGCI) fmt --diff
	go mod tidy -diff

ci: ## What the continuous integration runs
	.ci/run

##@ Tools

$(GOLANGCI):
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
	mv $(TOOLS)/golangci-lint $@

$(BUF):
	GOBIN=$(TOOLS) go install github.com/bufbuild/buf/cmd/buf@v1.75.0
	mv $(TOOLS)/buf $@

$(PROTOC_GEN_GO):
	GOBIN=$(@D) go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12

$(PROTOC_GEN_GO_GRPC):
	GOBIN=$(@D) go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2

$(PROTOC_GEN_GO_VTPROTO):
	GOBIN=$(@D) go install github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto@v0.6.1-0.20240319094008-0393e58bdf10

$(PEERS)/ratelimit:
	GOBIN=$(@D) go install github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36
	mv $(@D)/service_cmd $@

$(PEERS)/gubernator:
	GOBIN=$(@D) go install github.com/gubernator-io/gubernator/v2/cmd/gubernator@v2.13.0

# The well-known messages come from the Go modules in go.sum: no download, and
# the same bytes everywhere.
$(TOOLS)/protodeps.binpb: go.sum tools/protodeps/main.go
	@mkdir -p $(TOOLS)
	go run ./tools/protodeps $@

clean: ## Remove the binary and the built tools
	rm -rf quorlease .tools

help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' Makefile

.PHONY: build gen fmt test unit race fuzz determinism e2e faults soak grow bench peers failover middle powercut sim sim-long mission mission-table lint lint-proto verify ci clean help
