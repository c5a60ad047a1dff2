/**
 * Makes src/execd/models.ts: what models read of execd's tools, as `execd --describe --for-models`
 * prints it (`npm run wire`). A unit test holds the file against the execd that it runs with.
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { ModelTool } from "../src/tools/schema.ts";

/** The file that is made. */
export const MODELS_FILE = fileURLToPath(new URL("../src/execd/models.ts", import.meta.url));

const LINE_CHARS = 100;

const HEAD = `\
/**
 * What models read of execd's tools, by sets. Made by \`npm run wire\` from what \`execd --describe
 * --for-models\` prints: a change belongs into execd's table of methods.
 */
`;

/** What is printed. */
export interface DescribedModels {
  sets: { name: string; tools: ({ name: string } & ModelTool)[] }[];
}

/** Runs an execd for what models read. */
export function describeModels(execd: string): DescribedModels {
  const printed = execFileSync(execd, ["--describe", "--for-models"], { encoding: "utf8" });
  return JSON.parse(printed) as DescribedModels;
}

/** Takes what is printed and gives the text of src/execd/models.ts. */
export function modelsSource({ sets }: DescribedModels): string {
  const members = sets.map(({ name, tools }) => {
    const named = Object.fromEntries(tools.map(({ name: tool, ...words }) => [tool, words]));
    return [name, named];
  });
  return `${HEAD}export const MODELS = ${valueText(Object.fromEntries(members), "", "")} as const;\n`;
}

/** A value as TypeScript, on one line where it fits behind `before`. */
function valueText(value: unknown, indent: string, before: string): string {
  if (typeof value === "string") return stringText(value, indent, before);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const inner = `${indent}  `;
  const members = Array.isArray(value)
    ? value.map((one) => ["", one] as const)
    : Object.entries(value).map(([name, one]) => [`${keyText(name)}: `, one] as const);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{ ", " }"];
  if (members.length === 0) return Array.isArray(value) ? "[]" : "{}";
  const flat = members.map(([key, one]) => `${key}${valueText(one, "", "")}`).join(", ");
  const line = `${open}${flat}${close}`;
  if (!line.includes("\n") && `${indent}${before}${line},`.length <= LINE_CHARS) return line;
  const lines = members.map(([key, one]) => `${inner}${key}${valueText(one, inner, key)},\n`);
  return `${open.trim()}\n${lines.join("")}${indent}${close.trim()}`;
}

function keyText(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
}

/** A string, cut at blanks into parts of a line each where it is too long for one. */
function stringText(text: string, indent: string, before: string): string {
  const whole = JSON.stringify(text);
  if (`${indent}${before}${whole},`.length <= LINE_CHARS) return whole;
  const parts: string[] = [];
  let part = "";
  for (const word of text.split(/(?<= )/)) {
    const lead = parts.length === 0 ? before : "  + ";
    if (`${indent}${lead}${JSON.stringify(part + word)},`.length > LINE_CHARS) {
      parts.push(part);
      part = "";
    }
    part += word;
  }
  return [...parts, part].map((one) => JSON.stringify(one)).join(`\n${indent}  + `);
}
