/** What the extension adds to execd's own answer. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { it } from "node:test";
import { promisify } from "node:util";

/** The promise is 1 ms at the median (docs/performance.md has the figures). */
const ADDED_MEDIAN_MS = 1;
/** A busy machine may take so many round trips of bare pipes, measured in the same run, instead. */
const ADDED_FLOORS = 10;

// rule: pi.md, The extension: A round trip adds at most 1 ms at the median
it("a round trip through the extension adds at most 1 ms at the median", async () => {
  const script = join(import.meta.dirname, "scripts", "round-trip.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [script, "100"]);
  const rows = stdout.trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(rows.map((row) => row.method), ["list_sessions", "exec_command"]);
  // The second is for reading: a fork and an exec vary by more than this where others work too.
  const most = Math.max(ADDED_MEDIAN_MS, ADDED_FLOORS * rows[0].floorMedian);
  assert.ok(rows[0].addedMedian <= most, stdout);
});
