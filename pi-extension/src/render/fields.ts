/**
 * Reading values that may be anything: arguments still streaming in, details of an older version,
 * `{}` after a thrown error.
 */
import { oneLine } from "../text/width.ts";

/** The fields of an object whose types nobody has checked. */
export type Fields = Readonly<Record<string, unknown>>;

/** The fields of a wire type, as nobody has checked them. */
export type Unchecked<T> = { readonly [K in keyof T]?: unknown };

/** The most cells that an id, a signal or a number takes in a row. */
const LABEL_CELLS = 40;

/** Takes anything and gives its fields; none where it is no object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

/** Takes anything and gives it if it is a string. */
export function stringOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Takes anything and gives it if it is a finite number, also one written as a string. */
export function numberOf(value: unknown): number | undefined {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}

/** Takes anything and gives a short label where it is a number or a non-empty string. */
export function labelOf(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  if (typeof value !== "string") return undefined;
  return oneLine(value, LABEL_CELLS) || undefined;
}

/** Takes anything and gives it if it is an array, else an empty one. */
export function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Takes a text and a place in it, `[from, to]`, and gives what stands there. */
export function partOf(text: string, place: unknown): string | undefined {
  const [from, to] = arrayOf(place);
  const isPlace = Number.isSafeInteger(from) && Number.isSafeInteger(to);
  // Another extension may have put a text of its own in place of ours.
  if (!isPlace || Number(to) > text.length) return undefined;
  return text.slice(Number(from), Number(to));
}

/** Takes the content of a result or a message, in any shape, and gives its text. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  const texts = arrayOf(content).map((item) => stringOf(fieldsOf(item).text));
  return texts.filter((text) => text !== undefined).join("\n");
}

/** Takes base64 text and gives how many bytes it stands for, blanks and padding left out. */
export function base64Bytes(base64: string): number {
  let digits = 0;
  for (let i = 0; i < base64.length; i++) {
    const code = base64.charCodeAt(i);
    if (code > 0x20 && code !== 0x3d) digits++;
  }
  return Math.floor((digits * 3) / 4);
}

/** What is said of a process's stdin: nothing where it is a pipe. */
export function stdinNote(mode: unknown): string | undefined {
  if (mode === "null") return "no stdin";
  return mode === "pty" ? "pty" : undefined;
}
