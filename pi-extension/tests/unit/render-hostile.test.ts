import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { HOSTILE } from "./hostile-texts.ts";
import { context, draw, drawnBy, give, row, screen, start, theme } from "./render-harness.ts";
import { millis, randomText, seeded } from "./render-random.ts";
import type { UnifiedToolName } from "../../src/render/index.ts";
import { renderers } from "../../src/render/index.ts";

const TOOLS = Object.keys(renderers) as UnifiedToolName[];

/** Every place of a row that text of others can come to. */
function argsWith(text: string): object {
  return {
    cmd: text,
    workdir: text,
    session_id: text,
    chars: text,
    signal: text,
    on_exit: text,
    cols: text,
    rows: text,
    yield_until: text,
    until: conditionWith(text),
    stop: { ...conditionWith(text), text: [text, text, text, text, text] },
    session_ids: [text, 2],
    mode: text,
    timeout_ms: text,
  };
}

function conditionWith(text: string): object {
  return {
    text, regex: [text], count: text, port: text, http: { port: text, path: text }, input: text,
    idle_ms: text, tree_exit: true,
  };
}

/** What ended a wait and what is doing; every outcome and field of these has its words. */
function waitedWith(text: string, at: number): object {
  const outcomes = ["matched", "stopped", "impossible", "deadline", "exited", text];
  const fields = ["text", "regex", "port", "http", "input", "idle_ms", text];
  return {
    wait: {
      outcome: outcomes[at % outcomes.length], by: fields[at % fields.length], index: 0, text,
      captures: [null, text], port: text, status: text, state: "waiting_for_key", why: text,
      effective_timeout_ms: text,
    },
    state: at % 2 === 0 ? text : "waiting_for_line",
    state_detail: { command: text },
    full_screen: true,
    listening: [{ port: text, command: text }],
  };
}

function detailsWith(text: string): object {
  return {
    ...waitedWith(text, text.length),
    output: text,
    final_output: text,
    summary: text,
    status: text,
    cwd: text,
    log_path: text,
    session_id: text,
    exit_code: text,
    signal: text,
    note: text,
    warning: text,
    failure_message: text,
    wait_status: text,
    cols: text,
    rows: text,
    truncation: { truncated: true, truncatedBy: text, totalLines: text, outputLines: text },
    survivors: [{ pid: text, command: text, reason: text }],
    left: [{ session_id: text, pid: text, command: text }],
    sessions: [
      { session_id: text, name: text, command: text, cwd: text, log_path: text, running: false },
      { session_id: 2, command: text, signal: text, failure_message: text, running: false },
      ...Array.from({ length: 12 }, (_, at) => (
        { session_id: at, command: text, outcome: text, ...waitedWith(text, at) })),
    ],
  };
}

/** Takes a tool, arguments and details, and draws the row in every state and at many widths. */
function drawEverywhere(tool: UnifiedToolName, args: object, details: object, text: string): void {
  const streaming = row(tool, args);
  const running = row(tool, args);
  const final = row(tool, args, text);
  start(running);
  give(running, { text, details }, true);
  give(final, { text, details });
  const failed = row(tool, args);
  give(failed, { text, details: {}, isError: true });
  for (const target of [streaming, running, final, failed]) {
    for (const width of [4, 40, 80, 120]) {
      target.component.setExpanded(width % 80 !== 0);
      draw(target, width);
    }
  }
  give(running, { details: {} });
}

describe("nothing of a stranger steers the terminal", () => {
  for (const tool of TOOLS) {
    for (const [name, text] of Object.entries(HOSTILE)) {
      test(`${tool}: ${name}`, () => {
        drawEverywhere(tool, argsWith(text), detailsWith(text), text);
        const more = `x${text}y\n ${text}`;
        drawEverywhere(tool, argsWith(more), detailsWith(more), more);
      });
    }
  }

  test("the check itself sees what is unsafe", () => {
    const drawing = (line: string) => {
      const slot = () => ({ render: () => [line], invalidate: () => {} });
      return drawnBy({ renderShell: "self", renderCall: slot, renderResult: slot }, "x", {}, "/");
    };
    assert.throws(() => draw(drawing("\x1b]0;x\x07"), 80), /a control reached the terminal/);
    assert.throws(() => draw(drawing("x".repeat(81)), 80), /81 cells of 80/);
  });

  // rule: pi.md, The extension: Nothing a child prints reaches the terminal as a code
  test("random mixtures, at random widths", () => {
    const below = seeded(99);
    const pieces = [...Object.values(HOSTILE).map((text) => text.slice(0, 40)), " ", "word", "\n"];
    for (let round = 0; round < 300; round++) {
      const text = randomText(below, pieces, 12);
      const tool = TOOLS[below(TOOLS.length)] ?? "exec_command";
      const target = row(tool, argsWith(text));
      give(target, { text, details: detailsWith(text) });
      target.component.setExpanded(below(2) === 0);
      draw(target, 4 + below(120));
    }
  });

  test("what is harmless stays readable", () => {
    const target = row("exec_command", { cmd: "printf '\x1b[31mred\x1b[0m'" });
    give(target, { details: { output: "\x1b[32m✓\x1b[0m passed\r\n\tok\n", exit_code: 0 } });
    assert.deepEqual(screen(target), [
      "$ printf 'red'",
      "",
      "✓ passed",
      "   ok",
      "",
      "exit 0",
    ]);
  });
});

describe("nothing is too large", () => {
  const megabyte = 1 << 20;
  const floods = ["x", "ab ", "\n", "a\n", "漢", "\x1b[31m", "\x1b]", "é", "a\u0301", "\t"];
  for (const piece of floods) {
    test(`a megabyte of ${JSON.stringify(piece)} stalls no frame`, () => {
      const text = piece.repeat(megabyte / piece.length);
      for (const tool of TOOLS) {
        const target = row(tool, argsWith(text));
        give(target, { text, details: detailsWith(text) });
        const took = millis(() => target.component.render(80));
        assert.ok(took < 1500, `${tool}: ${took} ms`);
        // What does not change costs next to nothing: pi draws all rows for each frame.
        const again = millis(() => target.component.render(80));
        assert.ok(again < 100, `${tool} again: ${again} ms`);
      }
    });
  }

  test("output over the bound keeps its end and says so", () => {
    const target = row("exec_command", { cmd: "yes" });
    const line = "x".repeat(77);
    const lines = Array.from({ length: 10_000 }, (_, i) => `${line} ${i}`).join("\n");
    give(target, { details: { output: lines, exit_code: 0 } });
    target.component.setExpanded(true);
    const shown = screen(target, 120);
    assert.match(shown[2] ?? "", /^… \d+ characters too many to draw$/);
    assert.match(shown[3] ?? "", /^x{77} \d+$/, "no half of a line");
    assert.equal(shown.at(-3), `${line} 9999`);
  });

  test("the same output is laid out once, however often the row is redrawn", () => {
    const target = row("exec_command", { cmd: "yes" });
    const output = "漢".repeat(17_000);
    const details = { output, session_id: 1 };
    give(target, { details }, true);
    const segment = mock.method(Intl.Segmenter.prototype, "segment");
    const layouts = (): number =>
      segment.mock.calls.filter((call) => String(call.arguments[0]).length > 1000).length;
    target.component.render(80);
    const once = layouts();
    assert.ok(once > 0, "a first layout reads all of it");
    for (let i = 0; i < 50; i++) {
      give(target, { details: { ...details } }, true);
      target.component.render(80);
    }
    assert.equal(layouts(), once);
    target.component.render(40);
    assert.ok(layouts() > once, "another width is another layout");
    segment.mock.restore();
    give(target, { details: { ...details, output: "new" } }, true);
    assert.ok(screen(target).includes("new"));
    give(target, { details: {} });
  });
});

describe("no details make a renderer throw", () => {
  const odd: unknown[] = [undefined, null, 0, 7.5, -1, Number.NaN, "", "text", true, [], {}];
  odd.push([null], [{}], { a: 1 }, Symbol("s"), () => 1, 10n, new Date(0), Object.create(null));
  const keys = Object.keys({ ...detailsWith(""), ...argsWith("") });
  keys.push("found", "killed", "wake_armed", "log_complete", "log_truncated", "shell_exited");
  keys.push("effective_wait_ms", "wall_time_seconds", "omitted_bytes", "chars_b64", "eof", "tty");
  keys.push("yield_time_ms", "peek", "elapsed_ms", "running");

  function drawOdd(
    tool: UnifiedToolName,
    args: unknown,
    details: unknown,
    isError: boolean,
  ): void {
    const target = row(tool, args);
    draw(target, 60);
    give(target, { text: "text", details, isError });
    draw(target, 60);
    target.component.setExpanded(true);
    draw(target, 60);
  }

  for (const tool of TOOLS) {
    test(`${tool}: odd arguments and details`, () => {
      for (const value of odd) {
        for (const isError of [false, true]) drawOdd(tool, value, value, isError);
      }
    });

    test(`${tool}: odd fields`, () => {
      const below = seeded(tool.length);
      for (let round = 0; round < 500; round++) {
        const pick = (): unknown => odd[below(odd.length)];
        const some = (): object =>
          Object.fromEntries(keys.filter(() => below(3) > 0).map((key) => [key, pick()]));
        drawOdd(tool, some(), some(), below(4) === 0);
      }
    });

    test(`${tool}: content in no shape at all`, () => {
      const { renderResult } = renderers[tool];
      type Given = Parameters<typeof renderResult>;
      const options = { expanded: false, isPartial: false };
      for (const content of [...odd, [{ type: "image" }], [[]]]) {
        for (const state of odd) {
          // pi itself needs an array, to look for images, so that this goes past it.
          const given = context({ isError: true, state, cwd: undefined as unknown as string });
          const result = { content, details: {} } as Given[0];
          renderResult(result, options, theme, given).render(40);
        }
      }
      renderResult(undefined as unknown as Given[0], options, theme, context()).render(40);
    });
  }
});
