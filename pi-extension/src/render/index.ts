/** The renderers of the tools, by surface and tool. */
import { orError, result } from "./body.ts";
import { call } from "./calls.ts";
import type { ToolRenderers } from "./row.ts";
import { STREAM } from "./stream.ts";
import { UNIFIED } from "./unified.ts";
import type { Look } from "./view.ts";

/** The tools of the unified surface. */
export type UnifiedToolName = keyof typeof UNIFIED;

/** The tools of the stream surface. */
export type StreamToolName = keyof typeof STREAM;

/** The renderers of the unified surface. */
export const renderers: Record<UnifiedToolName, ToolRenderers> = drawn(UNIFIED);

/** The renderers of the stream surface. */
export const streamRenderers: Record<StreamToolName, ToolRenderers> = drawn(STREAM);

function drawn<Name extends string>(looks: Record<Name, Look>): Record<Name, ToolRenderers> {
  const isFramed = true;
  const made = Object.entries<Look>(looks).map(([name, { call: text, view, hasClock }]) => [name, {
    renderShell: "self",
    renderCall: call(text, { hasClock, isFramed }),
    renderResult: result(orError(view), isFramed),
  }]);
  return Object.fromEntries(made) as Record<Name, ToolRenderers>;
}
