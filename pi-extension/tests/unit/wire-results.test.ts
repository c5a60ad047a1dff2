/**
 * The types of replies and notifications are kept by hand: here they are held against those that
 * execd's own tests keep, byte by byte, of every family.
 */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { it } from "node:test";
import ts from "typescript";

const ROOT = resolve(import.meta.dirname, "..", "..");
const SAID = resolve(ROOT, "..", "tests", "fixtures", "said");
const TYPES = join(ROOT, "src", "execd", "wire-results.ts");

/** The type of each notification that the extension reads. */
const NOTES: Record<string, string> = {
  progress: "Progress",
  session_started: "SessionStarted",
  session_exited: "SessionExited",
  tool_execution_output: "ChunkNote",
  window_exited: "WindowExited",
  window_poll: "WindowPoll",
};

/** What execd said, and the name of its type. */
interface Said {
  type: string;
  value: Record<string, unknown>;
}

interface Message {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
}

/** All replies and notifications of the files that the extension has types for. */
function allSaid(methods: string[]): Said[] {
  const files = readdirSync(SAID).filter((name) => name.endsWith(".txt") && name !== "help.txt");
  return files.flatMap((name) => saidIn(readFileSync(join(SAID, name), "utf8"), methods));
}

function saidIn(text: string, methods: string[]): Said[] {
  const asked = new Map<unknown, string>();
  return text.split("\n").flatMap((line): Said[] => {
    const [, sign, json = ""] = /^([<>]) (\{"(?:jsonrpc|id)".*\})$/.exec(line) ?? [];
    if (sign === undefined) return [];
    // What differs from run to run stands there as a word.
    const { id, method = "", params, result } =
      JSON.parse(json.replace(/([:,[])[A-Z]+(?=[,}\]])/g, "$10")) as Message;
    if (sign === ">") asked.set(id, method);
    if (sign === ">") return [];
    const note = NOTES[method];
    if (note !== undefined && params) return [{ type: note, value: params }];
    const of = asked.get(id) ?? "";
    return result && methods.includes(of) ? [{ type: `Reply<"${of}">`, value: result }] : [];
  });
}

/** What the compiler says of a file with this text that stands beside wire-results.ts. */
function errorsOf(text: string): string[] {
  const name = join(ROOT, "src", "execd", "held.ts");
  const options: ts.CompilerOptions = {
    strict: true, exactOptionalPropertyTypes: true, noEmit: true, types: [],
    target: ts.ScriptTarget.ES2024, lib: ["lib.es5.d.ts"], module: ts.ModuleKind.NodeNext,
    allowImportingTsExtensions: true,
  };
  const host = ts.createCompilerHost(options);
  const { readFile, fileExists } = host;
  host.readFile = (path) => (path === name ? text : readFile(path));
  host.fileExists = (path) => path === name || fileExists(path);
  return ts.getPreEmitDiagnostics(ts.createProgram([name], options, host))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
}

const source = readFileSync(TYPES, "utf8");
const replies = source.slice(source.indexOf("interface Replies {"));
const methods = [...replies.matchAll(/^  (\w+): /gm)].map(([, name]) => name ?? "");
const said = allSaid(methods);

it("what execd says has the types that the extension takes it for", () => {
  const types = new Set(said.map(({ type }) => type));
  const known = methods.length + Object.keys(NOTES).length;
  assert.equal(types.size, known, [...types].join());
  assert.ok(said.length > 100, `${said.length} messages`);
  const errors = errorsOf([
    `import type { ${Object.values(NOTES).join(", ")}, Reply } from "./wire-results.ts";`,
    "type Deep<T> = T extends object ? { readonly [K in keyof T]: Deep<T[K]> } : T;",
    // By way of a variable: what the extension does not read of a message is no error.
    ...said.map(({ type, value }, i) =>
      `const v${i} = ${JSON.stringify(value)} as const; export const t${i}: Deep<${type}> = v${i};`),
    // The compiler looks at all of it: this one is wrong.
    'const odd = { status: "odd" } as const; export const wrong: Deep<Reply<"bash_stream">> = odd;',
  ].join("\n"));
  assert.equal(errors.length, 1, errors.join("\n"));
  assert.match(errors[0] ?? "", /Types of property 'status' are incompatible[^]*"odd"/);
});

it("every field that has a type is said, or told of in the documentation", () => {
  const docs = ["methods", "protocol", "waits"].map((name) =>
    readFileSync(resolve(ROOT, "..", "docs", `${name}.md`), "utf8"));
  const words = new Set(`${docs.join()}${JSON.stringify(said)}`.match(/\w+/g));
  const fields = [...source.matchAll(/^  (\w+)\??: /gm)].map(([, name]) => name ?? "");
  assert.ok(fields.length > 100);
  assert.deepEqual(fields.filter((name) => !words.has(name)), []);
});
