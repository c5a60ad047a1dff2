"""Makes what cargo-cyclonedx has written fit for a release.

    python3 scripts/dist/sbom.py FROM.json TO.json

Paths of the checkout give way to `/execd`, and what cargo does not know of joins the components: the
standard library and the C library, which are linked in.
"""

import json
import os
import subprocess
import sys
from pathlib import Path


def library(name, version, licence, purl):
    return {
        "type": "library", "bom-ref": purl, "name": name, "version": version, "scope": "required",
        "licenses": [{"expression": licence}], "purl": purl,
    }


def last_word(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[-1]


def main(source, target):
    root = Path(__file__).resolve().parents[2]
    bom = json.loads(source.read_text(encoding="utf-8").replace(f"file://{root}", "file:///execd"))
    release = [line.split()[-1] for line in subprocess.run(
        ["rustc", "-vV"], check=True, capture_output=True, text=True).stdout.splitlines()
        if line.startswith("release: ")][0]
    glibc = last_word("getconf", "GNU_LIBC_VERSION")
    linked = [
        library("rust-std", release, "MIT OR Apache-2.0", f"pkg:generic/rust-std@{release}"),
        library("glibc", glibc, "LGPL-2.1-or-later", f"pkg:generic/glibc@{glibc}"),
    ]
    bom["components"] += linked
    own = bom["metadata"]["component"]["bom-ref"]
    for one in bom["dependencies"]:
        if one["ref"] == own:
            one["dependsOn"] += [each["bom-ref"] for each in linked]
    bom["dependencies"] += [{"ref": each["bom-ref"], "dependsOn": []} for each in linked]
    text = json.dumps(bom, indent=2, ensure_ascii=False) + "\n"
    # Whoever reads it must not learn on what machine it was made.
    if str(root) in text or os.path.expanduser("~") + "/" in text:
        sys.exit("sbom: it has paths of this machine")
    target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
