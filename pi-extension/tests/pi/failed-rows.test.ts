/**
 * Rows of what has failed, in the TUI, beside those of pi's own bash: the same colour in every family.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { bash as window, BASH } from "./lib/bash.ts";
import { exec, turn } from "./lib/model.ts";
import type { Call } from "./lib/model.ts";
import { Scratch } from "./lib/scratch.ts";
import { bash as stream, STREAM } from "./lib/stream.ts";
import { Tui } from "./lib/tui.ts";

/** The colours behind the lines that begin with `$ `, as pi's theme writes them. */
function backgrounds(drawn: string): string[] {
  let behind = "";
  return drawn.split("\n").flatMap((line) => {
    // A colour may go on from the line before.
    const parts = line.split(/(\x1b\[[0-9;]*m)/);
    let ofText: string | undefined;
    for (const part of parts) {
      const set = /^\x1b\[(?:.*;)?(4[0-7]|49|48;5;\d+|48;2;\d+;\d+;\d+|0)m$/.exec(part)?.[1];
      if (set !== undefined) behind = set === "0" || set === "49" ? "" : set;
      else if (part.includes("$ ") && ofText === undefined) ofText = behind;
    }
    return ofText === undefined ? [] : [ofText];
  });
}

/** The colours of the rows of these calls, the first of which succeeds. */
async function colours(args: string[], extensions: [] | undefined, calls: Call[]): Promise<string[]> {
  const place = new Scratch();
  try {
    const tui = await Tui.start(place, {
      args, ...(extensions && { extensions }),
      script: [...calls.map((one, at) => turn(`Run ${at}.`, one)), turn("That was it.")],
    });
    await tui.submit("go");
    await tui.waitScreen(/That was it\./);
    return backgrounds(await tui.scrollbackAnsi());
  } finally {
    await place.close();
  }
}

// rule: pi.md, What you see: What has failed is a red row in every family, as one of pi's own bash is
test("failed, signalled, timed out: the rows have the colour of pi's own bash", async () => {
  const ends = ["true", "exit 3", "kill -9 $$"];
  const late = "sleep 60";
  const pis = await colours([], [], [
    ...ends.map((one) => window(one)), window(late, { timeout: 0.3 }),
  ]);
  const [good = "", bad = ""] = pis;
  assert.ok(good !== "" && bad !== "" && good !== bad, pis.join(" "));
  assert.deepEqual(pis, [good, bad, bad, bad]);
  const families: [string[], Call[]][] = [
    [[], ends.map((one) => exec(one))],
    [STREAM, [...ends.map((one) => stream(one)), stream(late, { timeoutMs: 300 })]],
    [BASH, [...ends.map((one) => window(one)), window(late, { timeout: 0.3, timeoutAction: "kill" })]],
  ];
  for (const [args, calls] of families) {
    const ours = await colours(args, undefined, calls);
    const wanted: string[] = calls.map((_, at) => (at === 0 ? good : bad));
    assert.deepEqual(ours, wanted, args.join(" "));
  }
});
