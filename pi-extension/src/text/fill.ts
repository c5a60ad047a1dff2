/** Texts with variables in them. */

/**
 * Takes a text and gives it with its variables replaced, with blanks within the braces or without;
 * what is no variable stays.
 */
export function fill(template: string, values: Readonly<Record<string, unknown>>): string {
  return template.replace(/\{\{\s*(\w+)\s*\}\}/g, (found, name: string) =>
    Object.hasOwn(values, name) ? String(values[name]) : found);
}
