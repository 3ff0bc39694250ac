# Thin: what takes more than a line is a script in scripts/ or a command of longmen-bench.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: run test nightly bench interop ci fmt fmt-check lint doc gen setup clean help

run: ## Start admin, gateway and a demo upstream, and route a path to it
	@scripts/run.sh

test: ## Run all tests, with a PostgreSQL of their own
	@scripts/test.sh

nightly: ## Run what takes too long for every change: random comparisons of the matcher
	@scripts/nightly.sh

bench: ## Measure the gateway beside nginx; results go to benchmark/results
	@scripts/bench.sh

interop: ## Run a service on the published Java starter against admin and gateway; needs Maven
	@scripts/interop.sh

# That the generated files are up to date is checked by tests.
ci: fmt-check lint doc test ## Everything a change must pass

fmt: ## Format the code
	@cargo fmt --all

fmt-check:
	@cargo fmt --all --check

# In the profile of the tests: what is built for the building itself is built once.
lint: ## Check the code with clippy; warnings are errors
	@scripts/setup.sh build
	@cargo clippy --profile e2e --locked --workspace --all-targets -- -D warnings

doc: ## Build the API documentation; warnings are errors
	@scripts/setup.sh build
	@RUSTDOCFLAGS="-D warnings" cargo doc --profile e2e --locked --workspace --no-deps

gen: ## Write the generated files anew
	@scripts/gen.sh

setup: ## Install what the other targets need and is missing
	@scripts/setup.sh all

clean: ## Remove what was built, and the data of make run
	@cargo clean
	@rm -rf .data

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
