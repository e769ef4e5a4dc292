# Test binaries named real_*, and tests named real_kafka_* in others, start real Kafka and Java MirrorMaker 2;
# all others are in memory and fast.
# The first run fetches Kafka's jars with Maven; afterwards no network is needed.
.PHONY: demo test check bench format lint test-fast test-real
.SILENT:

# Failures of tests speak for themselves.
export RUST_BACKTRACE = 0

FAST = --lib --bins --test '[!r]*'
REAL = --test 'r*'

demo: ## two embedded clusters and a mirror between them, live, for a look
	cargo build --release --quiet --package twinlog
	target/release/twinlog demo

test: check test-real ## everything

check: format lint test-fast ## what needs neither Java nor Kafka; under two minutes once built

format:
	echo "== format"
	cargo fmt --all -- --check

lint:
	echo "== lints"
	cargo clippy --quiet --workspace --all-targets -- -D warnings

test-fast:
	echo "== tests in memory"
	cargo test --quiet --workspace $(FAST) -- --skip real_kafka_
	cargo test --quiet --workspace --doc

test-real:
	echo "== tests on real Kafka"
	cargo test --quiet --workspace $(REAL)
	cargo test --quiet --workspace --test '[!r]*' real_kafka_

bench: ## side by side with Java MirrorMaker 2 and a bare relay; BENCH="--help" shows the options
	cargo build --release --quiet --package twinlog --package testkit --bins
	target/release/bench $(BENCH)
