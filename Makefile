.DEFAULT_GOAL := help
SHELL := /bin/bash

# The rings of tests that need no mail server: everything but tests/stack.
FAST := $(filter-out stack,$(basename $(notdir $(wildcard tests/*.rs))) \
	$(patsubst tests/%/main.rs,%,$(wildcard tests/*/main.rs)))

.PHONY: help setup dev run build test test-fast bench-retention lint fmt sqlx

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what building and testing need, if it is missing
	@.ci/setup

dev: ## Run everything on this machine, without configuration (MAILSERVER=1: with a mail server)
	@.ci/setup $(if $(MAILSERVER),,run)
	$(if $(MAILSERVER),tests/mailserver/dev $(MAILSERVER),cargo run --locked -- dev)

run: ## Run the server with the settings of the environment
	cargo run --locked -- serve

build: ## Build the optimised program
	cargo build --locked --release

test: setup ## Run all tests
	.ci/with-postgres cargo test --locked

test-fast: setup ## Run the tests that need no mail server
	.ci/with-postgres cargo test --locked --lib --bins $(addprefix --test ,$(FAST))

bench-retention: setup ## Measure what sending feels of retention (minutes; ratios of one run)
	WITH_POSTGRES_DURABLE=1 .ci/with-postgres cargo bench --locked --bench retention

lint: setup ## Check format, lints, documentation, query metadata and dependencies
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --lib --features otel -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items
	.ci/with-postgres .ci/sqlx --check
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check bans licenses sources; \
		else echo 'lint: cargo-deny is not installed, dependencies are not checked'; fi

fmt: ## Format the code
	cargo fmt

sqlx: setup ## Refresh .sqlx against a database with all migrations
	.ci/with-postgres .ci/sqlx
