# The commands of this repository. `make test` and `make test-dist-x64` are what CI runs.

# Written by npm when it has installed what the extension's checks need.
NPM_DONE = pi-extension/node_modules/.package-lock.json
TARGET_DIR = $(abspath $(or $(CARGO_TARGET_DIR),target))
# What `npm run pack-release` builds.
PACKED_BIN = $(TARGET_DIR)/x86_64-unknown-linux-gnu/release/execd

# A machine whose characters are unsigned and whose system calls have other numbers.
OTHER_TARGET = aarch64-unknown-linux-musl

# `make install` takes this binary, asks it for its pages and completions, and puts all below TO.
PREFIX ?= /usr/local
BIN ?= $(TARGET_DIR)/release/execd
TO = $(DESTDIR)$(PREFIX)
COMPLETIONS = bash-completion/completions/execd zsh/site-functions/_execd \
	fish/vendor_completions.d/execd.fish

.PHONY: test build docs lint unit extension release npm-found bench bench-quick coverage test-large \
	test-pi-152 spec install uninstall mcp-clients mcp-agents dist test-dist test-dist-x64 \
	test-arm64 test-same

test: npm-found lint unit extension mcp-clients bench-quick

build:
	cargo build --release --locked

# docs/methods.md and docs/cli.md, from what the program prints and from comments in src.
docs: build
	python3 scripts/docs.py "$(TARGET_DIR)/release/execd"

lint:
	cargo fmt --check
	cargo clippy --all-targets --locked -- -D warnings
	@if [ -d "$$(rustc --print target-libdir --target $(OTHER_TARGET) 2>/dev/null)" ]; then \
		cargo check --locked --target $(OTHER_TARGET); \
	else \
		echo "the target $(OTHER_TARGET) is not installed: not checked"; \
	fi

# nextest gives each test a process of its own: signal masks, children and fds are a process's.
unit: build
	@if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --locked --no-fail-fast; \
	else \
		echo "cargo-nextest not found: using cargo test"; \
		cargo test --locked --no-fail-fast; \
	fi

# The extension for pi: its types, its tests, its package. The tests start the release binary.
extension: npm-found build $(NPM_DONE)
	cd pi-extension && EXECD_TEST_BIN="$(TARGET_DIR)/release/execd" npm test

# `execd mcp` and real clients of the Model Context Protocol. .ci/run installs them; one that is not
# there is skipped by its name.
mcp-clients: npm-found build
	cd tests/mcp-clients && node run.mjs "$(TARGET_DIR)/release/execd"

# The same with Claude Code, Gemini CLI and OpenCode, whose models are scripts. Their packages take
# 640 MB, so this is no part of `make test`; one that cannot be had is skipped by its name.
mcp-agents: npm-found build
	cd tests/mcp-clients/agents && npm ci --ignore-scripts
	cd tests/mcp-clients && node run.mjs "$(TARGET_DIR)/release/execd" agents

# The tests of the extension in the newest pi, 1.5.2, which is installed from npm into a directory of
# its own, or PI_152_DIR has it. Its package does not install whole from every registry, so this is
# no part of `make test`. The tests of agent_execute bring pis of their own and are left out.
test-pi-152: npm-found build $(NPM_DONE)
	cd pi-extension && EXECD_TEST_BIN="$(TARGET_DIR)/release/execd" npm run test:pi-152

# It builds nothing: root then needs no compiler.
install:
	@test -x "$(BIN)" || { echo "there is no $(BIN): run make build first"; exit 1; } >&2
	install -D -m 755 "$(BIN)" "$(TO)/bin/execd"
	install -D -m 644 LICENSE "$(TO)/share/doc/execd/LICENSE"
	@umask 022 && set -e && mkdir -p "$(TO)/share/man/man1" && cd "$(TO)/share" && \
	"$(abspath $(BIN))" help --man > man/man1/execd.1 && \
	for name in $$("$(abspath $(BIN))" help --names); do \
		"$(abspath $(BIN))" help --man "$$name" > "man/man1/execd-$$name.1"; \
	done; \
	for file in $(COMPLETIONS); do \
		mkdir -p "$${file%/*}"; \
		"$(abspath $(BIN))" completions "$$(expr "$$file" : '\([a-z]*\)')" > "$$file"; \
	done
	@echo "execd, its man pages and completions are in $(TO)"

# The installed execd says which pages it has.
uninstall:
	@test -x "$(TO)/bin/execd" || { echo "there is no $(TO)/bin/execd"; exit 1; } >&2
	@set -e && cd "$(TO)/share" && names=$$("$(TO)/bin/execd" help --names) && \
	for name in $$names; do rm -f "man/man1/execd-$$name.1"; done; \
	rm -f man/man1/execd.1 doc/execd/LICENSE $(COMPLETIONS) && rmdir doc/execd
	rm -f "$(TO)/bin/execd"

# Its two tarballs in pi-extension/dist, and the test of the package with their binary.
release: npm-found $(NPM_DONE)
	cd pi-extension && npm run pack-release
	cd pi-extension && EXECD_TEST_BIN="$(PACKED_BIN)" npm run test:pack

# A release in dist/, of what is committed: npm packages, tarballs, .debs, crates, the bill of
# materials, SHA256SUMS. Nothing is published. DIST_PARTIAL=1 leaves aarch64 out where this machine
# cannot build for it, here and in what tries the release.
dist: npm-found $(NPM_DONE)
	scripts/dist/make.sh dist

# What it has made, compared with a second one from another checkout, installed without a network and
# run; the binary for aarch64 by qemu-user, by the tests of the protocol and of sessions too.
test-dist: test-same test-arm64
	EXECD_DIST=dist node --test scripts/dist/dist.test.mjs

# What CI does of both: a release for x86-64 alone, made once.
test-dist-x64: npm-found $(NPM_DONE)
	DIST_PARTIAL=1 scripts/dist/make.sh dist
	DIST_PARTIAL=1 EXECD_DIST=dist node --test scripts/dist/dist.test.mjs

test-same:
	scripts/dist/same.sh dist

test-arm64:
	scripts/dist/test-arm64.sh "$(TARGET_DIR)/aarch64-unknown-linux-gnu/release/execd"

$(NPM_DONE): pi-extension/package-lock.json | npm-found
	cd pi-extension && npm ci
	touch $@

npm-found:
	@command -v npm >/dev/null 2>&1 || { \
		echo "npm not found: the extension's checks need Node.js 20 or newer with npm, on x86-64."; \
		echo "Install them (on Debian: apt-get install nodejs npm), or check all else with"; \
		echo "    make lint unit bench-quick"; \
		exit 1; \
	} >&2

# Every promise of docs/performance.md against its floor; `-- --only spawn,echo` takes some.
bench:
	cargo bench --locked

# The same in under 30 s: benches must not rot. What is exact fails it, what is timed does not.
bench-quick:
	cargo bench --locked -- --quick

# Tests that take minutes and gibibytes, and those that need Slurm, engines for containers, or cut
# connections of ssh. A million histories of a log are lived through by optimised code, in a directory
# without a disk where there is one. Fifty runs of each program take longer than nextest gives a test.
test-large: build $(NPM_DONE)
	TMPDIR=$(firstword $(wildcard /dev/shm) $(TMPDIR) /tmp) cargo nextest run --locked \
		--cargo-profile large --run-ignored only -E 'test(/^log_ranges::/)'
	cargo nextest run --locked --run-ignored only -E 'not test(/^log_ranges::/)'
	EXECD_STATE_RUNS=50 cargo nextest run --locked the_state_of_programs
	cd pi-extension && export EXECD_TEST_BIN="$(TARGET_DIR)/release/execd" && \
		npm run test:pi-old && AGENT_MANY_ROUNDS=3 npm run test:many

# The rules of the specification and the tests of each, from the lines `rule:` above the tests.
spec:
	@python3 scripts/spec.py

# Line coverage of the pure rooms; needs `cov`: cargo install llvm_profparser
coverage:
	python3 scripts/coverage.py
