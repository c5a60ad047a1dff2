/** Whether the user trusts a project, so far that a file of it may name a program to be run. */
import * as pi from "@earendil-works/pi-coding-agent";
import type { HostContext } from "./host.ts";

/**
 * pi asks the user about a project only where that has settings or extensions of pi's own, and
 * counts all others as trusted. A file that pi does not know needs the user's word all the same: one
 * that pi has asked for, one that /trust has kept, or a setting that trusts every project.
 */
export function isTrusted(ctx: HostContext, cwd: string): boolean {
  if (ctx.isProjectTrusted?.() !== true) return false;
  try {
    if (pi.hasTrustRequiringProjectResources(cwd)) return true;
    const agentDir = pi.getAgentDir();
    const kept = new pi.ProjectTrustStore(agentDir).get(cwd);
    if (kept !== null) return kept;
    const settings = pi.SettingsManager.create(cwd, agentDir, { projectTrusted: false });
    return settings.getDefaultProjectTrust() === "always";
  } catch {
    // An older pi has no such store, and a broken one is no word of the user's.
    return false;
  }
}
