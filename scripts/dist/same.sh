#!/usr/bin/env bash
# Makes the release once more, from a checkout elsewhere, and compares:
#
#   scripts/dist/same.sh [DIR]        # where the first one is; dist/ by default
#
# The other checkout has another path and is built from nothing, under another umask: what a path,
# a time, an order of files or what was built before would change is found. The compiler, the C
# library and cargo's own directory are the same ones.
set -euo pipefail
cd "$(dirname "$0")/../.."
first=$(realpath "${1:-dist}")
commit=$(git rev-parse HEAD)
# The Node that make.sh would find in this checkout.
PATH=$PWD/pi-extension/node_modules/.bin:$PATH

there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
umask 077
other=$there/another/checkout
git clone --quiet --no-checkout "$(git rev-parse --path-format=absolute --git-common-dir)" "$other"
git -C "$other" checkout --quiet --detach "$commit"
CARGO_TARGET_DIR=$there/built "$other/scripts/dist/make.sh" "$there/dist"
diff "$first/SHA256SUMS" "$there/dist/SHA256SUMS" || {
    echo "$first is not what $commit makes elsewhere: these files are others" >&2
    exit 1
}
for file in "$first"/*; do
    cmp "$file" "$there/dist/${file##*/}"
done
echo "$first and a release of $commit from another checkout are the same bytes"
