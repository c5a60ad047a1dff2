/** Times, sizes and counts as people and models read them. */

/** Takes milliseconds and gives `1.3s`, from a minute on `1m 30s` and `2h 3m 4s`. */
export function formatSeconds(ms: number): string {
  const tenths = Math.round(atLeastZero(ms) / 100);
  if (tenths < 600) return `${(tenths / 10).toFixed(1)}s`;
  const seconds = Math.floor(tenths / 10);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${seconds % 60}s`;
  return `${Math.floor(minutes / 60)}h ${minutes % 60}m ${seconds % 60}s`;
}

/** Takes milliseconds and gives a short age: `41s`, `2m`, `1h 5m`, `3d 4h`. */
export function formatAge(ms: number): string {
  const seconds = Math.floor(atLeastZero(ms) / 1000);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return twoUnits(hours, "h", minutes % 60, "m");
  return twoUnits(Math.floor(hours / 24), "d", hours % 24, "h");
}

/**
 * Takes what list_processes says of those that it lists no more (how many, and the bounds) and gives
 * it in words; undefined where it lists all.
 */
export function forgottenText(
  { forgotten = 0, keptMax, keptMs }: Partial<Record<string, number | undefined>>,
): string | undefined {
  if (forgotten <= 0) return undefined;
  const bounds = keptMax === undefined || keptMs === undefined ? ""
    : ` (what has ended is listed for ${formatAge(keptMs)}, the last ${keptMax})`;
  return `forgotten: ${forgotten} that ended earlier${bounds}`;
}

/** Takes a number of bytes and gives `512B`, `50.0KB` or `1.2MB`, as pi writes sizes. */
export function formatSize(bytes: number): string {
  const size = atLeastZero(bytes);
  if (size < 1024) return `${Math.floor(size)}B`;
  if (size < 1024 * 1024) return `${(size / 1024).toFixed(1)}KB`;
  return `${(size / (1024 * 1024)).toFixed(1)}MB`;
}

function twoUnits(high: number, highUnit: string, low: number, lowUnit: string): string {
  return low === 0 ? `${high}${highUnit}` : `${high}${highUnit} ${low}${lowUnit}`;
}

function atLeastZero(value: number): number {
  return Number.isFinite(value) && value > 0 ? value : 0;
}
