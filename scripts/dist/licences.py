"""Writes the licence texts of all that is in execd's binary into a directory.

    python3 scripts/dist/licences.py DIR
    python3 scripts/dist/licences.py --check    # whether this machine has those that no crate brings

DIR/crates.txt has those of all crates, each text once, below the crates that it belongs to;
DIR/rust-library.html is what the Rust project says of its standard library, and DIR/glibc.txt what
Debian says of the GNU C Library, with the LGPL: both are linked in. A crate without a licence text
ends this with an error.
"""

import json
import subprocess
import sys
from pathlib import Path

# How files with the texts of licences are called, in capitals.
NAMES = ("LICENSE", "LICENCE", "COPYING", "UNLICENSE", "NOTICE", "COPYRIGHT")
TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
GLIBC = Path("/usr/share/doc/libc6/copyright")
LGPL = Path("/usr/share/common-licenses/LGPL-2.1")
RULE = "=" * 80


def told(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def crates():
    """The packages that execd needs to run or to be built, apart from its own, by name."""
    found = {}
    for target in TARGETS:
        words = ["cargo", "metadata", "--format-version=1", "--locked"]
        metadata = json.loads(told(*words, f"--filter-platform={target}"))
        packages = {one["id"]: one for one in metadata["packages"]}
        needs = {one["id"]: one["deps"] for one in metadata["resolve"]["nodes"]}
        left = list(metadata["workspace_members"])
        seen = set(left)
        while left:
            for dep in needs[left.pop()]:
                is_normal = any(kind["kind"] is None for kind in dep["dep_kinds"])
                if is_normal and dep["pkg"] not in seen:
                    seen.add(dep["pkg"])
                    left.append(dep["pkg"])
        found.update({each: packages[each] for each in seen if packages[each]["source"]})
    return sorted(found.values(), key=lambda one: (one["name"], one["version"]))


def texts_of(crate):
    files = sorted(Path(crate["manifest_path"]).parent.iterdir())
    named = [one for one in files if one.is_file() and one.name.upper().startswith(NAMES)]
    if not named:
        sys.exit(f"licences: {crate['name']} {crate['version']} has no licence text")
    return [one.read_text(encoding="utf-8").strip() + "\n" for one in named]


def all_crates():
    """One text, with all crates that have it word for word."""
    owners = {}
    for crate in crates():
        name = f"{crate['name']} {crate['version']} ({crate['license']})"
        for text in texts_of(crate):
            owners.setdefault(text, []).append(name)
    parts = [f"{RULE}\n{chr(10).join(names)}\n{RULE}\n\n{text}" for text, names in owners.items()]
    return "The crates that execd is built with, each with its licence.\n\n" + "\n".join(parts)


def of_the_machine():
    """What the machine has of the licences of Rust's library; ends where it lacks some licence."""
    library = Path(told("rustc", "--print=sysroot").strip(), "share/doc/rust/COPYRIGHT-library.html")
    for needed in (library, GLIBC, LGPL):
        if not needed.is_file():
            sys.exit(f"licences: there is no {needed}")
    return library


def main(directory):
    library = of_the_machine()
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "crates.txt").write_text(all_crates(), encoding="utf-8")
    (directory / "rust-library.html").write_bytes(library.read_bytes())
    (directory / "glibc.txt").write_bytes(GLIBC.read_bytes() + b"\n" + LGPL.read_bytes())


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        of_the_machine()
    else:
        main(Path(sys.argv[1]))
