/**
 * From one instance to the next in the same process: pi draws the conversation of /reload, /resume
 * and the like before `session_start`, so rows need their renderers when the factory runs. Names
 * that were free a moment ago are free to be registered there.
 */
import { type Surface, surfaces } from "./tools/surface.ts";

/** /reload loads the modules anew; only what hangs on globalThis lives through it. */
const KEY = Symbol.for("pi-execd.handover");

const shared = globalThis as { [KEY]?: string[] | undefined };

/** Leaves the names of the surfaces that this instance had registered. */
export function handOver(registered: Surface[]): void {
  shared[KEY] = registered.map(({ name }) => name);
}

/** Takes what was left, once: an instance that was started otherwise must not find it. */
export function handedOver(): Surface[] {
  const names = shared[KEY] ?? [];
  shared[KEY] = undefined;
  return names.map((name) => surfaces.get(name)).filter((surface) => surface !== undefined);
}
