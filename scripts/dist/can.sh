#!/usr/bin/env bash
# Whether a release can be made of this checkout, on this machine:
#
#   scripts/dist/can.sh        # ends with 1 where none can, and says why
#
# What is looked at are the checkout, programs, and files that no build makes: what fails beyond that is
# the release's own fault. make.sh begins with it, and CI tries no release where it says no.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=x86_64-unknown-linux-gnu

no() { printf '%s\n' "$*" >&2; exit 1; }

for tool in cargo-deb cargo-cyclonedx rustc cc node npm python3 git tar gzip sha256sum; do
    command -v "$tool" >/dev/null || no "there is no $tool"
done
# No repository, one of somebody else (which git does not touch), or one without a commit.
said=$(git rev-parse --verify HEAD 2>&1) || no "git knows no commit of this checkout: ${said%%$'\n'*}"
changed=$(git status --porcelain)
if [ -n "$changed" ] && [ -z "${DIST_DIRTY:-}" ]; then
    no "a release is made of a commit, and this is not committed: ${changed%%$'\n'*}"
fi
[ -d "$(rustc --print=target-libdir --target "$target")" ] \
    || no "rustup target add $target would bring its standard library"
[ -e "$(cc -print-file-name=libc.a)" ] || no "the C compiler knows no libc.a"
python3 scripts/dist/licences.py --check
