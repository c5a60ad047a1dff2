/** Which name was meant by one that nobody knows. */

/** A name is taken for a misspelt one when so few letters are wrong. */
const WRONG_LETTERS_MAX = 2;
/** A name that is longer than this is compared with nothing: the work grows with its length. */
const NAME_CHARS_MAX = 64;

/** The one of `names` that is nearest to `given`, upper and lower case apart; undefined: none is. */
export function nearest(given: string, names: readonly string[]): string | undefined {
  if (given.length > NAME_CHARS_MAX) return undefined;
  let best: { name: string; wrong: number } | undefined;
  for (const name of names) {
    const wrong = wrongLetters(given.toLowerCase(), name.toLowerCase());
    if (wrong <= WRONG_LETTERS_MAX && (!best || wrong < best.wrong)) best = { name, wrong };
  }
  return best?.name;
}

/** How many letters have to be put in, taken out or changed to make `b` of `a`. */
function wrongLetters(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [above, letter] of [...a].entries()) {
    const next = [above + 1];
    for (let at = 1; at <= b.length; at++) {
      const changed = (row[at - 1] ?? 0) + (letter === b[at - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[at] ?? 0) + 1, (next[at - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
