/** Whether pi would end, with its sessions, when this run has ended. */
import type { HostContext } from "./host.ts";

/** What is read of pi's `agent_end` event. */
export interface HoldMode {
  messages?: readonly { role: string; stopReason?: string }[];
}

/**
 * True in print and json mode, where pi exits when it settles, unless the run failed or was
 * aborted: then nobody would answer the wake.
 */
export function holdsIn(event: HoldMode, ctx: HostContext): boolean {
  if (ctx.mode !== "json" && ctx.mode !== "print") return false;
  const last = event.messages?.findLast(({ role }) => role === "assistant");
  return last?.stopReason !== "error" && last?.stopReason !== "aborted";
}
