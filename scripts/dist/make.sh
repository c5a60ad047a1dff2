#!/usr/bin/env bash
# Makes a release in dist/, of what is committed: `make dist`. The same commit makes the same bytes,
# on a machine with the same compiler and C library. Nothing is published.
#
#   scripts/dist/make.sh [DIR]        # where it goes; dist/ by default
#
# It needs cargo-deb and cargo-cyclonedx (cargo install), node and npm, python3, git, GNU tar and
# coreutils, and what can.sh looks for; of changes that are not committed only with DIST_DIRTY=1. For aarch64 see pi-extension/scripts/release-binary.ts; a machine that has not what that
# takes makes no release, unless DIST_PARTIAL=1 leaves aarch64 out.
set -euo pipefail
cd "$(dirname "$0")/../.."
umask 022
# What runs TypeScript: the Node that the extension's checks bring along, where it is installed.
PATH=$PWD/pi-extension/node_modules/.bin:$PATH
export LC_ALL=C TZ=UTC
scripts/dist/can.sh
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

out=$(realpath -m "${1:-dist}")
version=$(sed -n '/^\[package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# cargo-deb finds what it packs by a path from Cargo.toml.
stage=target/dist

say() { printf 'dist: %s\n' "$*" >&2; }

# Prints the path of the binary for aarch64, or nothing where DIST_PARTIAL leaves it out. A build that
# fails is never left out: only a machine that cannot begin one, of which the script says 3.
arm64_binary() {
    local status=0
    node pi-extension/scripts/release-binary.ts linux-arm64 || status=$?
    if [ "$status" = 3 ] && [ -n "${DIST_PARTIAL:-}" ]; then
        say "nothing is made for aarch64: DIST_PARTIAL"
    elif [ "$status" = 3 ]; then
        say "a release is for aarch64 too; DIST_PARTIAL=1 leaves that out"
        exit 1
    elif [ "$status" != 0 ]; then
        say "the build for aarch64 failed"
        exit 1
    fi
}

# What a user installs, below $2 as below /usr. $1 is the binary of another machine, whose pages
# this one's binary prints: they are the same.
tree() {
    make --no-print-directory install BIN="$x64" PREFIX= DESTDIR="$2" >/dev/null
    install -m 755 "$1" "$2/bin/execd"
    install -m 644 README.md CHANGELOG.md "$stage/execd.cdx.json" "$2/share/doc/execd/"
    mkdir -p "$2/share/doc/execd/licences"
    install -m 644 "$stage"/licences/* "$2/share/doc/execd/licences/"
}

tarball() {
    local name=execd-$version-$1
    mv "$stage/tree" "$stage/$name"
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=ustar \
        -C "$stage" -c "$name" | gzip -n9 > "$out/$name.tar.gz"
    mv "$stage/$name" "$stage/tree"
}

# Man pages in a .deb are compressed, cargo-deb makes a file copyright of LICENSE, and Debian's zsh looks
# for completions of packages in a directory of its own.
deb() {
    gzip -n9 "$stage"/tree/share/man/man1/*
    rm "$stage/tree/share/doc/execd/LICENSE"
    mv "$stage/tree/share/zsh/site-functions" "$stage/tree/share/zsh/vendor-completions"
    cargo deb --quiet --locked --no-build --no-strip --multiarch none --target "$1" \
        --output "$out/execd_${version}-1_$2.deb"
}

crates() {
    cargo package --quiet --locked --no-verify --allow-dirty 2> >(grep -v '^warning: ignoring ' >&2 || true)
    cp "$target_dir/package/execd-$version.crate" "$out/"
}

sbom() {
    cargo cyclonedx --quiet --format json --spec-version 1.5 --target x86_64-unknown-linux-gnu \
        --override-filename execd.cdx
    python3 scripts/dist/sbom.py execd.cdx.json "$stage/execd.cdx.json"
    rm execd.cdx.json
    cp "$stage/execd.cdx.json" "$out/execd-$version.cdx.json"
}

rm -rf "$out" "$stage"
mkdir -p "$out" "$stage"
x64=$(node pi-extension/scripts/release-binary.ts linux-x64)
arm64=$(arm64_binary)
node pi-extension/scripts/pack-release.ts --strict --bin "$x64" ${arm64:+--bin "$arm64"} --out "$out" >&2
python3 scripts/dist/licences.py "$stage/licences"
sbom
crates
for kind in "x86_64-unknown-linux-gnu x86_64-linux amd64 $x64" \
    ${arm64:+"aarch64-unknown-linux-gnu aarch64-linux arm64 $arm64"}; do
    read -r target name deb_arch binary <<< "$kind"
    rm -rf "$stage/tree"
    tree "$binary" "$stage/tree"
    tarball "$name"
    deb "$target" "$deb_arch"
done
sums=$(cd "$out" && sha256sum -- *)
printf '%s\n' "$sums" > "$out/SHA256SUMS"
rm -rf "$stage"
say "a release of execd $version is in $out"
