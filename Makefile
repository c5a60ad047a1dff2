# The commands of this repository. `make test` is what CI runs.

.PHONY: test build lint unit bench bench-quick coverage

test: lint unit bench-quick

build:
	cargo build --release --locked

lint:
	cargo fmt --check
	cargo clippy --all-targets --locked -- -D warnings

# nextest gives each test a process of its own: signal masks, children and fds are a process's.
unit:
	@if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --locked --no-fail-fast; \
	else \
		echo "cargo-nextest not found: using cargo test"; \
		cargo test --locked --no-fail-fast; \
	fi

# Every promise of docs/performance.md against its floor; `-- --only spawn,echo` takes some.
bench:
	cargo bench --locked

# The same in under 30 s: benches must not rot. What is exact fails it, what is timed does not.
bench-quick:
	cargo bench --locked -- --quick

# Line coverage of the pure rooms; needs `cov`: cargo install llvm_profparser
coverage:
	python3 scripts/coverage.py
