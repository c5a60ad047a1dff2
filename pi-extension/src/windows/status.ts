/** The status that tells how many background windows run. */

/** Its key, under which footers of other extensions look for it. */
export const BACKGROUND_STATUS_KEY = "backgroundBashTmuxCommands";

/** Its value for so many windows; undefined for none, which clears it. */
export function backgroundStatus(running: number): string | undefined {
  if (running === 0) return undefined;
  return `${running} background proc${running === 1 ? "" : "s"}`;
}
