/**
 * The floors of the extension: an import goes down, or stays on its floor, and never runs in a
 * circle. Imports of types count as well: who has to know a type of another file has to know that
 * file.
 */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize, relative, resolve } from "node:path";
import { it } from "node:test";

const SRC = resolve(import.meta.dirname, "..", "..", "src");

/** The floors from the lowest one up: a folder, or files that stand directly in src. */
const FLOORS: string[][] = [
  ["text"], ["execd"], ["pi"], ["bash"], ["render"], ["tools"], ["session.ts"],
  ["index.ts", "core.ts"],
];

/** The files of the families, which only index.ts may name. */
const FAMILIES = ["tools/unified.ts", "tools/stream.ts", "tools/bash.ts"];

/** Which files each file imports, by their paths below src. */
function importsOf(): Map<string, string[]> {
  return new Map([...textsOf()].map(([file, text]) => [file, importsIn(file, text)]));
}

/** The text of each file, by its path below src. */
function textsOf(): Map<string, string> {
  const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"));
  return new Map(files.map((file) => [file, readFileSync(join(SRC, file), "utf8")]));
}

/** The relative imports and re-exports in the text of a file. */
function importsIn(file: string, text: string): string[] {
  const statements = /^(?:import|export)\b[^;]*?\bfrom "(\.[^"]+)"|\bimport\("(\.[^"]+)"\)/gm;
  const paths = [...text.matchAll(statements)].map(([, from, dynamic]) => from ?? dynamic ?? "");
  return paths.map((path) => normalize(join(dirname(file), path)));
}

/** The files that one can reach from `start` by one import or more. */
function reachable(graph: Map<string, string[]>, start: string): Set<string> {
  const seen = new Set<string>();
  const next = [...(graph.get(start) ?? [])];
  for (let file = next.pop(); file !== undefined; file = next.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    next.push(...(graph.get(file) ?? []));
  }
  return seen;
}

/** The groups of files each of which imports itself by way of the others. */
function circlesOf(graph: Map<string, string[]>): string[][] {
  const reach = new Map([...graph.keys()].map((file) => [file, reachable(graph, file)]));
  const inCircle = [...graph.keys()].filter((file) => reach.get(file)?.has(file)).sort();
  const groups = new Map<string, string[]>();
  for (const file of inCircle) {
    const reaches = (from: string, to: string) => reach.get(from)?.has(to) === true;
    const group = inCircle.filter((other) => reaches(file, other) && reaches(other, file));
    groups.set(group.join(), group);
  }
  return [...groups.values()];
}

it("every import names a file that is there", () => {
  const graph = importsOf();
  assert.ok(graph.size > 50, `${graph.size} files below ${relative(process.cwd(), SRC)}`);
  for (const [file, imports] of graph) {
    for (const path of imports) assert.ok(graph.has(path), `${file} imports ${path}`);
  }
});

/** The number of the floor that a file stands on. */
function floorOf(file: string): number {
  const [first = ""] = file.split("/");
  return FLOORS.findIndex((names) => names.includes(first));
}

it("no import goes up", () => {
  const upward: string[] = [];
  for (const [file, imports] of importsOf()) {
    assert.ok(floorOf(file) >= 0, `${file} stands on no floor`);
    for (const path of imports) {
      if (floorOf(path) > floorOf(file)) upward.push(`${file} imports ${path}`);
    }
  }
  assert.deepEqual(upward.sort(), []);
});

it("index.ts is the only file that names the families", () => {
  for (const family of FAMILIES) {
    const importers = [...importsOf()].filter(([, imports]) => imports.includes(family));
    assert.deepEqual(importers.map(([file]) => file), ["index.ts"], family);
  }
});

it("execd/ and text/ know nothing of pi", () => {
  for (const [file, text] of textsOf()) {
    // The width of a character on a terminal is the only thing that they ask it for.
    const ofPi = [...text.matchAll(/ from "(@[^"]+)"/g)].map(([, name]) => name)
      .filter((name) => name !== "@earendil-works/pi-tui" || floorOf(file) > 0);
    if (floorOf(file) < floorOf("pi")) assert.deepEqual(ofPi, [], file);
  }
});

it("no import runs in a circle, types included", () => {
  assert.deepEqual(circlesOf(importsOf()), []);
});

it("a circle is found, also one of types and of re-exports", () => {
  const a = importsIn("tools/a.ts", 'import {\n  type B,\n} from "../b.ts";\nimport "node:fs";\n');
  const b = importsIn("b.ts", 'export type { A } from "./tools/a.ts";\n');
  assert.deepEqual([a, b], [["b.ts"], ["tools/a.ts"]]);
  const graph = new Map([["tools/a.ts", a], ["b.ts", b], ["c.ts", ["b.ts"]]]);
  assert.deepEqual(circlesOf(graph), [["b.ts", "tools/a.ts"]]);
});
