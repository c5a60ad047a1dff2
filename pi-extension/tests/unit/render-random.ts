/** Randomness that repeats, and a stopwatch, for the renderers' tests. */

/** Takes a seed and gives a function that gives whole numbers below its argument (mulberry32). */
export function seeded(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** Takes pieces and gives up to `most` of them in a row. */
export function randomText(below: (n: number) => number, pieces: string[], most: number): string {
  let text = "";
  for (let i = below(most + 1); i > 0; i--) text += pieces[below(pieces.length)];
  return text;
}

/**
 * Milliseconds of processor time that work takes, whoever else uses the machine; to tell linear
 * time from quadratic, so that limits can be generous.
 */
export function millis(work: () => unknown): number {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
}
