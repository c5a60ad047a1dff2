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

/** Which files each file imports, by their paths below src. */
function importsOf(): Map<string, string[]> {
  const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"));
  const read = (file: string) => readFileSync(join(SRC, file), "utf8");
  return new Map(files.map((file) => [file, importsIn(file, read(file))]));
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
