#!/usr/bin/env bash
# Runs the tests of the protocol and of sessions on the binary for aarch64 that `make dist` has built:
#
#   scripts/dist/test-arm64.sh BINARY
#
# The tests were built with the path of this machine's binary, in whose place the other one lies for
# them (arm64.sh). What qemu-user itself does otherwise is left out: arm64-left-out names each test
# with its reason. A binary that is not there, or cannot be run here, fails this, unless DIST_PARTIAL=1
# leaves aarch64 out.
set -euo pipefail
cd "$(dirname "$0")/../.."
tests=(protocol:: exec_command:: write_stdin:: kill_session:: bytes:: read_output:: mcp::)

why=
if [ ! -x "$1" ]; then
    why="there is no $1"
elif ! scripts/dist/arm64.sh "$1" --version; then
    why="$1 cannot be run here"
fi
if [ -n "$why" ] && [ -n "${DIST_PARTIAL:-}" ]; then
    echo "$why: the tests on aarch64 are left out (DIST_PARTIAL)" >&2
    exit 0
elif [ -n "$why" ]; then
    echo "$why; DIST_PARTIAL=1 leaves the tests on aarch64 out" >&2
    exit 1
fi
read -ra left_out <<< "$(sed -n 's/^\([a-z0-9_:]*\) .*/--skip \1/p' scripts/dist/arm64-left-out | xargs)"
built=$(cargo test --locked --no-run --test=it 2>&1) || { echo "$built"; exit 1; }
EXECD_OVER=$(realpath -m "${CARGO_TARGET_DIR:-target}")/debug/execd
EXECD_ARM64=$(realpath "$1")
export EXECD_OVER EXECD_ARM64
failed=0
while read -r program; do
    scripts/dist/arm64.sh "$program" --test-threads=2 "${left_out[@]}" "${tests[@]}" || failed=1
done < <(sed -n 's/.*Executable .*(\(.*\))$/\1/p' <<< "$built")
exit "$failed"
