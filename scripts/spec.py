#!/usr/bin/env python3
"""Prints the rules of the specification, each with the tests that show it (`make spec`).

A rule is a line `rule: DOCUMENT, SECTION: TEXT` in a comment above a test; lines that begin with
three blanks go on with the rule above them.
"""
import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACES = [("tests/it", ".rs"), ("src", ".rs"), ("pi-extension/tests", ".test.ts")]
TEST_NAME = re.compile(r"""(?:fn (\w+)|(?:it|test)\(\s*["`](.*?)["`],)""")


def main() -> None:
    rules = collections.defaultdict(list)
    for directory, end in PLACES:
        for path in sorted((ROOT / directory).rglob("*" + end)):
            above = []
            for line in path.read_text().splitlines():
                text = line.strip()
                comment = re.match(r"///? ?(.*)", text)
                if comment and comment.group(1).startswith("rule: "):
                    above.append(comment.group(1)[len("rule: "):])
                elif comment and above and comment.group(1).startswith("  "):
                    above[-1] += " " + comment.group(1).strip()
                elif above and (name := TEST_NAME.search(text)):
                    for rule in above:
                        rules[rule].append(f"{path.stem}::{name.group(1) or name.group(2)}")
                    above = []
    for rule, tests in sorted(rules.items()):
        print(f"{rule}\n    {', '.join(tests)}")


main()
