# The targets are CI's own jobs: `make ci` is what .ci/run runs.

GO          ?= go
CLANG       ?= clang-14
STATICCHECK ?= $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.7.0
# Vetted with their tests: one of each operating system, and of each size of a word; built: the others.
PLATFORMS    = linux/arm64 darwin/arm64 windows/amd64 linux/386
OTHERS       = linux/amd64 darwin/amd64 windows/arm64

.PHONY: all ci test modules frameworks race invariants lint api api-check cross ptx ptx-check sizes bench train soak fuzz mutate

all: lint test

ci: lint api-check cross ptx-check test modules frameworks race invariants fuzz soak train

test:
	$(GO) test ./...

# The modules below this one, which have dependencies that Leat's users need not have.
MODULES = $(patsubst %/go.mod,%,$(filter-out frameworks/%,$(wildcard */go.mod */*/go.mod)))
modules:
	@for m in $(MODULES); do echo "test $$m"; (cd $$m && $(GO) vet ./... && $(GO) test ./... && $(GO) mod tidy -diff) || exit 1; done

# The modules of other frameworks. Training on MNIST is left out under the race detector,
# where it takes minutes, and GoMLX's matrix product does arithmetic on pointers that checkptr
# refuses. No test that needs the library of ONNX Runtime is skipped.
frameworks: export LEAT_ONNX = required
frameworks: export CGO_ENABLED = 1
frameworks:
	@LEAT_ONNXRUNTIME=$$(frameworks/onnx/testdata/fetch.sh) || exit 1; export LEAT_ONNXRUNTIME; \
	for m in frameworks/*/; do echo "test $$m"; (cd $$m && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) mod tidy -diff && \
		$(GO) test ./... && \
		$(GO) test -race -gcflags='github.com/gomlx/...=-d=checkptr=0' -skip MNIST ./...) || exit 1; done

# The race detector needs a C compiler. Packages are left out that take minutes under it:
# slotmodel and the tools have one goroutine, what two examples are made of has its own
# tests, and the measurements of the command are of packages that have theirs.
SLOW = /internal/(slotmodel|docs|arrows|sizes|mutate|apilist|picture|probe|bench)$$|/examples/(train|imagefolder)$$
race:
	CGO_ENABLED=1 $(GO) test -race $$($(GO) list ./... | grep -vE '$(SLOW)')

# The costly checks: poisoned rows, waits for events never recorded, leak reports. In all other
# packages they change nothing that a test looks at.
invariants:
	$(GO) test -tags invariants ./device/... ./pinnedpool ./loader/... ./prefetch/... ./serve ./tensors ./internal/fuzz ./internal/waitmodel ./examples/frames

lint:
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo 'run gofmt -w on these'; exit 1; }
	$(GO) vet ./...
	$(STATICCHECK) ./...
	$(GO) mod tidy -diff

# All that users can name, one line each. A change of it is part of the commit that makes it.
api:
	$(GO) run ./internal/apilist >api/leat.txt.new
	mv api/leat.txt.new api/leat.txt

api-check:
	@$(GO) run ./internal/apilist | diff -u api/leat.txt - || { echo 'the API has changed: run make api, and commit api/leat.txt with the change'; exit 1; }

# It compiles, tests included, wherever Go does; and without purego.
cross:
	@for p in $(PLATFORMS); do echo "vet $$p"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) vet ./... || exit 1; done
	@for p in $(OTHERS); do echo "build $$p"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build ./... || exit 1; done
	CGO_ENABLED=0 $(GO) build -tags leat_nocuda ./...

# PTX from the CUDA C beside it, by clang alone.
ptx:
	CLANG=$(CLANG) $(GO) generate ./kernels ./examples/train/nn ./examples/frames/filter ./device/cuda/latch ./cmd/leat/internal/probe

# The committed PTX is what the sources give.
ptx-check: ptx
	git diff --exit-code -- '*.ptx'

# How large a program becomes that uses Leat, and whose code is in it.
sizes:
	@$(GO) run ./internal/sizes

bench:
	$(GO) test -run '^$$' -bench . -benchtime 1s ./loader ./prefetch ./kernels

train:
	$(GO) run ./examples/train

# Random programs over the public API against a reference, and random stops, faults
# and competing loaders, under the race detector and with all checks: half a minute
# of each. Then larger pipelines in every order of events, two minutes of one core, and a million
# requests to a Queue. Longer, and other programs than CI's: make soak LEAT_SOAK=1h SEED=
LEAT_SOAK ?= 30s
SEED      ?= 1
REQUESTS  ?= 1000000
KILLS     ?= 200
soak:
	CGO_ENABLED=1 LEAT_SOAK=$(LEAT_SOAK) LEAT_SOAK_SEED=$(SEED) $(GO) test -race -tags invariants -count=1 -timeout 0 \
		-run 'TestSoak|TestLoader|TestPipeline' ./prefetch ./internal/fuzz
	LEAT_SOAK=$(LEAT_SOAK) $(GO) test -count=1 -timeout 0 -run 'TestSoak|TestEveryLife' ./internal/slotmodel
	CGO_ENABLED=1 LEAT_SERVE_SOAK=$(REQUESTS) $(GO) test -race -count=1 -timeout 0 -run TestSoak ./serve
	LEAT_KILLS=$(KILLS) $(GO) test -count=1 -timeout 0 -run TestAKilledRun ./loader

# Parsers: some seconds each, two minutes in all. A minute each: make fuzz FUZZTIME=1m
FUZZTIME ?= 8s
FUZZERS   = loader/idx:FuzzRead \
	loader/source:FuzzGlob \
	loader/ranks:FuzzShardFromEnv \
	loader/tar:FuzzTar \
	loader/tfrecord:FuzzRecords \
	loader/tfrecord:FuzzExample \
	loader/mds:FuzzFolder \
	loader/images:FuzzDraw \
	loader/npy:FuzzOpen \
	loader/tokens:FuzzOpen \
	loader/lines:FuzzIndex \
	loader/csv:FuzzOpen \
	loader/jsonl:FuzzOpen \
	loader/safetensors:FuzzOpen
fuzz:
	@for f in $(FUZZERS); do echo "fuzz $$f"; \
		$(GO) test -run '^$$' -fuzz "^$${f#*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./$${f%:*} || exit 1; done
	cd loader/parquet && $(GO) test -run '^$$' -fuzz FuzzParquet -fuzztime $(FUZZTIME) -fuzzminimizetime 10x .

# Small mistakes in the source, one at a time: each is caught by a test, or listed in
# internal/mutate/survivors.txt with the reason why none can. A few minutes a package.
# MUTATE names the packages of which that is so. The others have survivors that are still
# to be dealt with, which make mutate MUTATE=./prefetch shows; those of device take
# MUTATE='-tests ./device/cpu,./device/order,./device/devicetest ./device ./device/driver'.
# internal/slots has none left with MUTATE='-tests ./prefetch ./internal/slots'.
MUTATE      ?= ./pinnedpool ./loader/records ./loader/statefile ./loader/ranks
MUTATEFLAGS ?= -tags invariants
mutate:
	$(GO) run ./internal/mutate $(MUTATEFLAGS) $(MUTATE)
