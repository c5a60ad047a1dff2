/**
 * The sessions whose waits a person has broken off with Esc, and that still run: rows say so, and
 * how to end them, as long as it is true. What is drawn now is redrawn when that changes. A row that
 * pi restores later says nothing of it.
 */

/** The most sessions, and rows of one session, that are remembered: those that came last. */
const SESSIONS_MAX = 256;
const ROWS_MAX = 16;

/** What redraws each row that tells of a session, by something that is the row's own. */
type Rows = Map<object, () => void>;

const left = new Map<number, Rows>();
let takesEsc = false;

/** Esc has ended a wait on this session; `isOpen`: a second Esc is looked for now. */
export function noteLeft(id: number, isOpen: boolean): void {
  const rows = left.get(id) ?? new Map();
  left.delete(id);
  left.set(id, rows);
  const [oldest] = left.keys();
  if (left.size > SESSIONS_MAX && oldest !== undefined) left.delete(oldest);
  takesEsc = isOpen;
}

/** No second Esc is looked for any more. */
export function noteEscOver(): void {
  if (!takesEsc) return;
  takesEsc = false;
  for (const rows of left.values()) redraw(rows);
}

/** Sessions have gone; `runs` tells which are left. */
export function noteGone(runs: (id: number) => boolean): void {
  for (const [id, rows] of left) {
    if (runs(id)) continue;
    left.delete(id);
    redraw(rows);
  }
}

/**
 * Whether this session was left running and still runs, and whether a second Esc is for it. `row`
 * is redrawn when that changes.
 */
export function leftRunning(
  id: unknown,
  row: object,
  redrawn: () => void,
): { takesEsc: boolean } | undefined {
  const rows = left.get(Number(id));
  if (!rows) return undefined;
  rows.set(row, redrawn);
  const [oldest] = rows.keys();
  if (rows.size > ROWS_MAX && oldest !== undefined) rows.delete(oldest);
  return { takesEsc };
}

function redraw(rows: Rows): void {
  for (const redrawn of [...rows.values()]) {
    try {
      redrawn();
    } catch {
      // The row is gone, and what a timer throws would end pi.
    }
  }
}
