/**
 * Parts of docs/pi.md that scripts have measured: each stands between two comments that name it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";

const PAGE = resolve(import.meta.dirname, "../../docs/pi.md");

/** Puts lines in the place of those that stand between the marks of a part. */
export function writePart(name: string, lines: string[]): void {
  const page = readFileSync(PAGE, "utf8");
  const [begin, end] = [`<!-- ${name} -->\n`, `<!-- end of ${name} -->\n`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${PAGE} has no part ${name}`);
  const part = `${begin}\n${lines.join("\n")}\n\n`;
  writeFileSync(PAGE, page.slice(0, from) + part + page.slice(to));
}
