/** Values that may be anything: what somebody else has sent, thrown, or left out. */

/** Whether `value` is an object with fields (no array, no null). */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Takes JSON and gives the object that it is; undefined for whatever else the text may be. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The fields of `fields` that are there: absent ones are left out, never undefined. */
export function given<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: NonNullable<T[K]> };
}

/** Takes whatever was thrown and gives its message. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
