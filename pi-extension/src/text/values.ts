/** Takes whatever was thrown and gives its message. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
