/** What a key of a settings file may hold, and what is said of a value or a key that does not fit. */

/** What a key may hold. */
export interface Kind<T> {
  /** What is said of a value that does not fit, behind `expected`. */
  expected: string;
  fits(value: unknown): value is T;
}

/** The type of the values of a kind. */
export type Held<K> = K extends Kind<infer T> ? T : never;

/** A text with something in it. */
export const filledText: Kind<string> = {
  expected: "a string that is not empty",
  fits: (value): value is string => isString(value) && value.trim() !== "",
};

export const flag: Kind<boolean> = {
  expected: "true or false",
  fits: (value) => typeof value === "boolean",
};

/** One of these words. */
export function oneOf<const T extends string>(...words: T[]): Kind<T> {
  const named = words.map((word) => `"${word}"`);
  return {
    expected: `${named.slice(0, -1).join(", ")} or ${named.at(-1)}`,
    fits: (value): value is T => words.includes(value as T),
  };
}

/** A number of `what`, from `least` to `most`. */
export function between(what: string, least: number, most: number): Kind<number> {
  return {
    expected: `a number of ${what} from ${least} to ${most}`,
    fits: (value): value is number => isNumber(value) && value >= least && value <= most,
  };
}

export function isString(value: unknown): value is string {
  return typeof value === "string";
}

export function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

const SHOWN_CHARS = 60;

/** A value as it stands in a file, cut where it is long. */
export function shownValue(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text;
}
