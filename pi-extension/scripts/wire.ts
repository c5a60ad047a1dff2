/**
 * Makes src/execd/wire.ts: the params of execd's methods as types, from the table that `execd --describe`
 * prints (`npm run wire`). A unit test holds the file against the execd that it runs with. What
 * execd answers is not in that table; src/execd/wire-results.ts has it, written by hand.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { MODELS_FILE, describeModels, modelsSource } from "./models.ts";

/** The file that is made. */
export const WIRE_FILE = fileURLToPath(new URL("../src/execd/wire.ts", import.meta.url));

/** The binary, unless EXECD_TEST_BIN names another one. */
const EXECD = fileURLToPath(new URL("../../target/release/execd", import.meta.url));

const LINE_CHARS = 100;

const HEAD = `\
/**
 * The params of execd's methods. Made by \`npm run wire\` from what \`execd --describe\` prints: a
 * change belongs into execd's table of methods.
 */
`;

const TAIL = `\
/** A method of execd. */
export type Method = keyof MethodParams;
`;

/** What `execd --describe` uses of JSON Schema. */
export interface Schema {
  type?: string | string[];
  description?: string | undefined;
  enum?: string[];
  items?: Schema;
  oneOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
}

/** What is used of the table. */
export interface Described {
  methods: { name: string; summary: string; params: Schema; otherParams: Schema | null }[];
}

/** Runs an execd for its table of methods. */
export function describe(execd: string): Described {
  return JSON.parse(execFileSync(execd, ["--describe"], { encoding: "utf8" })) as Described;
}

/** Takes the table of methods and gives the text of src/execd/wire.ts. */
export function wireSource({ methods }: Described): string {
  const shared = new Map<string, string>();
  const members = methods.map(({ name, summary, params, otherParams }) => {
    const types = [params, ...(otherParams ? [otherParams] : [])].map((schema) =>
      fieldsText(schema, "  ", shared));
    return `${comment(summary, "  ")}  ${name}: ${types.join(" | ")};\n`;
  });
  const params = `${comment("The params of each method.", "")}export interface MethodParams {\n`;
  return [HEAD, ...shared.values(), `${params}${members.join("")}}\n`, TAIL].join("\n");
}

/** The fields of an object as the text of a type. */
function fieldsText(schema: Schema, indent: string, shared: Map<string, string>): string {
  const { properties = {}, required = [] } = schema;
  const fields = Object.entries(properties).map(([name, field]) => {
    const mark = required.includes(name) ? "" : "?";
    const doc = field.description === undefined ? "" : comment(field.description, `${indent}  `);
    return `${doc}${indent}  ${name}${mark}: ${typeText(field, name, shared)};\n`;
  });
  return fields.length === 0 ? "Record<string, never>" : `{\n${fields.join("")}${indent}}`;
}

/** A schema as the text of a type; what cannot be told in one is an error, not `unknown`. */
function typeText(schema: Schema, name: string, shared: Map<string, string>): string {
  const { type, oneOf, items, properties, additionalProperties } = schema;
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  if (oneOf) {
    const { description } = schema;
    return oneOf.map((one) => typeText({ description, ...one }, name, shared)).join(" | ");
  }
  if (Array.isArray(type)) {
    return type.map((one) => typeText({ type: one }, name, shared)).join(" | ");
  }
  if (type === "array" && items) return listText(typeText(items, name, shared));
  if (type === "object" && properties) return sharedType(schema, name, shared);
  if (type === "object" && typeof additionalProperties === "object") {
    return `Record<string, ${typeText(additionalProperties, name, shared)}>`;
  }
  if (type === "integer") return "number";
  if (["string", "number", "boolean", "null"].includes(String(type))) return String(type);
  throw new Error(`no type for ${name}: ${JSON.stringify(schema)}`);
}

function listText(type: string): string {
  return `readonly ${type.includes(" | ") ? `(${type})` : type}[]`;
}

/** An object within params: a type of its own, named after the field; methods may share it. */
function sharedType(schema: Schema, name: string, shared: Map<string, string>): string {
  const plain = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  const doc = comment(schema.description ?? name, "");
  const fields = fieldsText(schema, "", shared);
  // The stream and bash families spell the fields of what they share with others in camelCase.
  for (const typeName of [plain, `${plain}Camel`]) {
    const text = `${doc}export type ${typeName} = ${fields};\n`;
    if ((shared.get(typeName) ?? text) !== text) continue;
    shared.set(typeName, text);
    return typeName;
  }
  throw new Error(`too many kinds of ${plain}`);
}

/** A comment, on several lines where it is too long for one. */
function comment(text: string, indent: string): string {
  const words = text.replaceAll("*/", "* /").split(" ");
  const whole = `${indent}/** ${words.join(" ")} */\n`;
  if (whole.length <= LINE_CHARS + 1) return whole;
  const lines = [`${indent} *`];
  for (const word of words) {
    const longer = `${lines.at(-1)} ${word}`;
    if (longer.length <= LINE_CHARS) lines[lines.length - 1] = longer;
    else lines.push(`${indent} * ${word}`);
  }
  return `${indent}/**\n${lines.join("\n")}\n${indent} */\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const execd = process.env.EXECD_TEST_BIN ?? EXECD;
  writeFileSync(WIRE_FILE, wireSource(describe(execd)));
  writeFileSync(MODELS_FILE, modelsSource(describeModels(execd)));
}
