# glassbox: `make demo` shows it, `make test` proves it. Needs git, make and a Rust toolchain (1.95 or newer).

CARGO ?= cargo
MODELS ?= models
FUZZ_SECONDS ?= 60
MUTATIONS ?= 100000

.PHONY: help demo test build lint tidy models test-real test-aarch64 mutations fuzz bench clean

help: ## what can be made
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo: ## build, run the built-in suite on the built-in model, print verdicts, write a report
	$(CARGO) build --release --locked -p glassbox-cli
	./target/release/glassbox demo

build: ## the binary target/release/glassbox
	$(CARGO) build --release --locked -p glassbox-cli

test: lint ## format, lints, unit, golden, command-line and documentation tests, architecture rules
	$(CARGO) test --workspace --locked

lint:
	@rustc --version >/dev/null 2>&1 || { echo "make: a Rust toolchain is missing; install Rust 1.95 or newer with rustup"; exit 1; }
	@$(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@$(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

tidy: ## the architecture rules alone
	$(CARGO) run --quiet --locked -p xtask -- tidy

models: ## fetch the three real models of the tests by package name and check their SHA-256
	sh scripts/models $(MODELS)

test-real: ## tests on the real models (after `make models`)
	GLASSBOX_MODELS=$(abspath $(MODELS)) $(CARGO) test --release --locked --workspace --features real --test 'real*' -- --nocapture

test-aarch64: ## kernels and whole models on emulated aarch64 (needs qemu-user, gcc-aarch64-linux-gnu and the Rust target)
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
	$(CARGO) test --locked --target aarch64-unknown-linux-gnu -p glassbox-mechanisms -p glassbox-tensor -p glassbox-model

mutations: ## MUTATIONS (100000) changed files for each reader, the same ones on every machine; no fuzzer needed
	GLASSBOX_MUTATIONS=$(MUTATIONS) $(CARGO) test --locked -p glassbox-checkpoint -p glassbox-model -p glassbox-quantize -p glassbox-text \
	-p glassbox-suite -p glassbox-record --tests changed

fuzz: ## coverage-guided fuzzing, FUZZ_SECONDS (60) for each target; wants `cargo install cargo-fuzz` and a C++ compiler
	cd fuzz && for target in $$($(CARGO) fuzz list); do mkdir -p corpus/$$target && \
	$(CARGO) fuzz run -s none $$target corpus/$$target seeds/$$target -- -max_total_time=$(FUZZ_SECONDS) -timeout=60 -rss_limit_mb=1024 || exit 1; done

bench: ## glassbox beside llama.cpp and transformers, in turns (after `make models`); BENCH takes options, as in BENCH="--rows 'qwen pp512 t1'"
	python3 scripts/bench/compare.py --models $(abspath $(MODELS)) $(BENCH)

clean:
	$(CARGO) clean
