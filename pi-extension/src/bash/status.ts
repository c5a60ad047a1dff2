/** The statuses that tell how many background windows run. */

/** The key of the number, under which footers of other extensions look for it. */
export const BACKGROUND_STATUS_KEY = "backgroundBashTmuxCommands";
/** The key of the words behind it: pi's own footer has all values, in the order of their keys. */
export const BACKGROUND_WORDS_KEY = `${BACKGROUND_STATUS_KEY}Words`;

/** Each key with its value for so many windows; undefined for none, which clears it. */
export function backgroundStatus(running: number): [key: string, value: string | undefined][] {
  const words = `background proc${running === 1 ? "" : "s"}`;
  return [
    [BACKGROUND_WORDS_KEY, running === 0 ? undefined : words],
    [BACKGROUND_STATUS_KEY, running === 0 ? undefined : String(running)],
  ];
}
