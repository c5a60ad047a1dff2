#!/usr/bin/env python3
"""Line coverage of the pure rooms by the unit tests, with a floor of 95 %.

Runs the library's tests with rustc's own instrumentation and reads the profile with `cov` of
the crate llvm_profparser (`cargo install llvm_profparser`), which needs no LLVM tools that match
the toolchain. Lines of test modules are not counted.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

FLOOR_PERCENT = 95.0


def main() -> int:
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory() as work:
        target = os.path.join(root, "target", "coverage")
        env = dict(
            os.environ,
            RUSTFLAGS="-C instrument-coverage",
            LLVM_PROFILE_FILE=os.path.join(work, "%p.profraw"),
            CARGO_TARGET_DIR=target,
        )
        tests = subprocess.run(
            ["cargo", "test", "--lib", "--locked"],
            cwd=root, env=env, check=True, text=True, stderr=subprocess.PIPE,
        )
        binary = re.search(r"unittests lib.rs \((.*)\)", tests.stderr).group(1)
        # Processes that tests start leave profiles too; the tests' own is the largest.
        profile = max(glob.glob(os.path.join(work, "*.profraw")), key=os.path.getsize)
        shown = subprocess.run(
            ["cov", "show", "--instr-profile", profile, "--object", os.path.join(root, binary)],
            check=True, text=True, errors="replace", stdout=subprocess.PIPE,
        ).stdout
    return report(shown)


def report(shown: str) -> int:
    lines = {}
    name, in_tests = None, False
    for line in shown.splitlines():
        if line.startswith("/") and line.endswith(".rs"):
            name, in_tests = line, False
            continue
        match = re.match(r"\s*(\d+)\|\s*([\d.]*[kMG]?)\|(.*)", line)
        if not (match and name and "/src/pure/" in name and "/tests_" not in name):
            continue
        in_tests = in_tests or "#[cfg(test)]" in match.group(3)
        if match.group(2) and not in_tests:
            covered, missed = lines.setdefault(name.split("/src/")[1], [0, []])
            if match.group(2) == "0":
                missed.append(int(match.group(1)))
            else:
                lines[name.split("/src/")[1]][0] = covered + 1
    covered = sum(entry[0] for entry in lines.values())
    missed = sum(len(entry[1]) for entry in lines.values())
    for file, (hit, missing) in sorted(lines.items()):
        print(f"{file:32} {hit:5} of {hit + len(missing):5}  {missing or ''}")
    if covered == 0:
        print("nothing was counted: the profile could not be read")
        return 1
    percent = 100.0 * covered / (covered + missed)
    print(f"pure rooms: {covered} of {covered + missed} lines, {percent:.1f} %")
    return 0 if percent >= FLOOR_PERCENT else 1


if __name__ == "__main__":
    sys.exit(main())
