/** /jobs, /tail and /kill, and which surfaces go together, under a stub of pi. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { plainText } from "../../src/text/plain.ts";
import type { StreamReport } from "../../src/execd/wire-results.ts";
import {
  EXECD, Pi, type Result, kill, parentOf, processesWith, runs, textOf, until,
} from "./lib.ts";

process.env.PI_EXECD_TOOLS = "stream";

const idOf = (result: Result) => (result.details as unknown as Required<StreamReport>).sessionId;

/** What is shown in the place of the editor. */
interface Shown {
  render(width: number): string[];
  handleInput(key: string): void;
  dispose?(): void;
}

describe("commands for people", () => {
  let pi: Pi;
  let offered: string[] = [];
  let choose = (_labels: string[]): string | undefined => undefined;
  before(async () => {
    pi = new Pi();
    Object.assign(pi.ctx.ui as object, {
      select: async (_title: string, labels: string[]) => {
        offered = labels;
        return choose(labels);
      },
    });
    await pi.start();
  });
  after(() => pi.shutdown());

  /** Runs a command of pi and gives the notices that it made. */
  async function run(name: string, args = ""): Promise<string[]> {
    const before = pi.notices.length;
    await pi.commands.get(name)?.(args, pi.ctx);
    return pi.notices.slice(before);
  }

  it("nothing has run: they say so and start nothing", async () => {
    const idle = new Pi();
    await idle.commands.get("jobs")?.("", idle.ctx);
    await idle.commands.get("tail")?.("1", idle.ctx);
    assert.deepEqual(idle.notices, ["execd: no sessions", "execd: no session #1"]);
  });

  // rule: pi.md, The extension: /jobs with Enter, /tail ID [N], /kill ID on what runs and what has
  //   ended
  it("/jobs: running first, then what has ended; the chosen one's output is shown", async () => {
    const ended = idOf(await pi.call("bash_stream", { command: "seq 1 300; exit 3" }));
    const params = { command: "echo up; sleep 450", yieldMs: 1_000, name: "a nap" };
    const running = idOf(await pi.call("bash_stream", params));
    assert.deepEqual(await run("jobs"), []);
    assert.deepEqual(
      offered.map((label) => label.replace(/ \d+s /, " Ns ")),
      [`#${running} Ns a nap: echo up; sleep 450`, `#${ended} Ns seq 1 300; exit 3 · exit 3`],
    );
    choose = ([first]) => first;
    const [shown = ""] = await run("jobs");
    assert.match(shown, new RegExp(`^#${running} \\d+s a nap: .*\nup\nlog: /`));
    choose = (labels) => labels.at(-1);
    const [last = ""] = await run("jobs");
    const lines = last.split("\n");
    assert.equal(lines[0], `#${ended} 0s seq 1 300; exit 3 · exit 3 · last 200 lines`);
    assert.deepEqual([lines[1], lines[200]], ["101", "300"]);
    assert.match(lines[201] ?? "", /^log: /);

    const poll = await pi.call("poll_process", { sessionId: running });
    assert.match(textOf(poll), /\n---\nup\n/, "what people looked at is still the model's");
    await pi.call("kill_process", { sessionId: running });
  });

  /** Opens what a command shows in the place of the editor, on a terminal of 20 rows. */
  function terminal(size = { rows: 20 }): { custom: unknown; view: () => Shown } {
    let shown: Shown | undefined;
    const custom = (factory: (...args: unknown[]) => Shown) => new Promise((resolve) => {
      const tui = { terminal: size, requestRender: () => {} };
      const theme = { fg: (_tone: string, text: string) => text };
      shown = factory(tui, theme, {}, (result: unknown) => {
        shown?.dispose?.();
        resolve(result);
      });
    });
    return { custom, view: () => shown as Shown };
  }

  /** `/jobs` showed the end of the output once; Enter was to tail it. */
  // rule: pi.md, The extension: /jobs, Enter: a live tail that scrolls; more than 30 choices scroll
  it("/jobs in a terminal follows the chosen one, scrolls, and closes with q", async () => {
    const dir = mkdtempSync(join(tmpdir(), "execd-tail-"));
    const gate = join(dir, "go");
    const held = `until [ -e ${gate} ]; do sleep 0.02; done`;
    const command = `seq 1 50; ${held}; printf 'late \\033[2J%s\\n' $((6*7)); exit 5`;
    const id = idOf(await pi.call("bash_stream", { command, yieldMs: 1_000 }));
    const { custom, view } = terminal();
    const ctx = { ...pi.ctx, mode: "tui", ui: { ...(pi.ctx.ui as object), custom } };
    const done = pi.commands.get("jobs")?.("", ctx);
    await until(() => view() !== undefined, "the list");
    view().handleInput("\r");
    // Below the output: what the view does, the keys, a rule.
    const screen = () => view()?.render(60) ?? [];
    const state = () => screen().at(-3) ?? "";
    await until(() => screen().includes("50"), "its output");
    assert.match(screen()[1] ?? "", new RegExp(`^#${id} \\d+s seq 1 50; `));
    assert.deepEqual([screen()[2], screen().at(-4), screen().length], ["44", "50", 12]);
    assert.match(state(), /^following · /);
    view().handleInput("\x1b[A");
    assert.deepEqual([screen()[2], screen().at(-4)], ["43", "49"]);
    writeFileSync(gate, "");
    await until(() => /1 newer line /.test(state()), "more, of which nothing is drawn");
    assert.deepEqual([screen()[2], screen().at(-4)], ["43", "49"], "what is read stays");
    view().handleInput("\x1b[F");
    assert.equal(screen().at(-4), "late 42");
    await until(() => /^ended · /.test(state()), "its end");
    assert.match(screen()[1] ?? "", /^#\d+ \d+s seq 1 50; /);
    view().handleInput("\x1b[5~");
    view().handleInput("\x1b[H");
    assert.equal(screen()[2], "1");
    view().handleInput("q");
    await done;
    rmSync(dir, { recursive: true });
    const poll = await pi.call("poll_process", { sessionId: id });
    assert.match(textOf(poll), /\nlate /, "what people looked at is still the model's");
  });

  /** Follows what a `bash_stream` of a pi of its own runs, once it has printed `up`. */
  async function following(command: string) {
    const own = new Pi();
    await own.start();
    const id = idOf(await own.call("bash_stream", { command, yieldMs: 1_000 }));
    const { custom, view } = terminal();
    const ui = { ...(own.ctx.ui as object), select: async () => undefined, custom };
    const done = own.commands.get("jobs")?.("", { ...own.ctx, mode: "tui", ui });
    const screen = () => view()?.render(60) ?? [];
    await until(() => view() !== undefined, "the list");
    view().handleInput("\r");
    await until(() => screen().includes("up"), "its output");
    const close = async () => {
      view().handleInput("q");
      await done;
    };
    return { own, id, close, state: () => screen().at(-3) ?? "" };
  }

  /** It said `unknown sessionId: 1`, of an execd that it had started for that. */
  // rule: pi.md, The extension: /jobs, /tail, /kill: an execd that was lost or does not answer is
  //   said, and no other one is started
  it("/jobs: an execd that dies while it is followed is said to be lost, and none is started", async () => {
    const { own, close, state } = await following("echo up; exec sleep 454");
    const execd = parentOf(await runs("sleep 454"));
    const daemons = () => processesWith(EXECD).filter((pid) => parentOf(pid) === process.pid);
    const others = daemons().filter((pid) => pid !== execd);
    kill(execd);
    await until(() => !/^following /.test(state()), "the end of it");
    assert.match(state(), /^execd was lost · /);
    assert.deepEqual(daemons(), others);
    await close();
    await own.shutdown();
  });

  /** "following" stood there for as long as it hung. */
  // rule: pi.md, The extension: /jobs, /tail, /kill: an execd that was lost or does not answer is
  //   said, and no other one is started
  it("/jobs: an execd that does not answer is said to, until it does", async () => {
    const { own, close, state } = await following("echo up; exec sleep 455");
    const execd = parentOf(await runs("sleep 455"));
    process.kill(execd, "SIGSTOP");
    try {
      await until(() => /^no answer for [2-9]\d* s · /.test(state()), "that it is silent");
    } finally {
      process.kill(execd, "SIGCONT");
    }
    await until(() => /^following · /.test(state()), "that it goes on");
    await close();
    await own.shutdown();
  });

  // rule: pi.md, The extension: /jobs, Enter: a live tail that scrolls; more than 30 choices scroll
  it("/jobs: more than 30 scroll in a terminal, and come in parts elsewhere", async () => {
    const many = new Pi();
    await many.start();
    for (let i = 1; i <= 33; i++) await many.call("bash_stream", { command: `true ${i}` });
    const parts: string[][] = [];
    const select = async (_title: string, labels: string[]) => {
      parts.push(labels);
      return parts.length === 1 ? labels.at(-1) : labels[2];
    };
    const inParts = { ...many.ctx, ui: { ...(many.ctx.ui as object), select } };
    await many.commands.get("jobs")?.("", inParts);
    assert.deepEqual([parts[0]?.length, parts[0]?.at(-1), parts[1]?.length], [31, "… 3 more", 3]);
    assert.match(many.notices.at(-1) ?? "", /^#\d+ 0s true 1 · exit 0\n\(no output\)/);

    const { custom, view } = terminal();
    const ui = { ...(many.ctx.ui as object), select, custom };
    const done = many.commands.get("jobs")?.("", { ...many.ctx, mode: "tui", ui });
    await until(() => view() !== undefined, "the list");
    const list = view();
    assert.match(list.render(80).join("\n"), /→ #\d+ 0s true 33 · exit 0 *\n[^]*\(1\/33\)/);
    // Up from the first one is the last one.
    list.handleInput("\x1b[A");
    assert.match(list.render(80).join("\n"), /→ #\d+ 0s true 1 · exit 0 *\n *\(33\/33\)/);
    list.handleInput("\r");
    await until(() => view() !== list, "its output");
    await until(() => /^ended · /.test(view().render(80).at(-3) ?? ""), "its end");
    assert.match(view().render(80)[1] ?? "", /^#\d+ 0s true 1 · exit 0( |$)/);
    view().handleInput("\x1b");
    await done;
    await many.shutdown();
  });

  /** 25 choices on 24 rows were left to pi's selector, which does not scroll. */
  // rule: pi.md, The extension: /jobs: what the screen has no room for scrolls and follows its
  //   size; what is forgotten is said
  it("/jobs: choices that the screen has no room for scroll, and follow its size", async () => {
    const many = new Pi();
    await many.start();
    for (let i = 1; i <= 13; i++) await many.call("bash_stream", { command: `true ${i}` });
    const size = { rows: 24 };
    const { custom, view } = terminal(size);
    const ui = { ...(many.ctx.ui as object), select: async () => undefined, custom };
    const done = many.commands.get("jobs")?.("", { ...many.ctx, mode: "tui", ui });
    await until(() => view() !== undefined, "the list");
    const drawn = () => view().render(80);
    // Two rules, the title, two lines of keys; and the place in the list, where not all are seen.
    assert.match(drawn().at(-4) ?? "", /\(1\/13\)/);
    assert.equal(drawn().length, 10 + 6);
    view().handleInput("\x1b[B");
    size.rows = 18;
    assert.equal(drawn().length, 4 + 6);
    assert.match(drawn().join("\n"), /→ #\d+ 0s true 12 · exit 0 *\n[^]*\(2\/13\)/);
    size.rows = 40;
    assert.equal(drawn().length, 13 + 5, "all are seen");
    assert.match(drawn().join("\n"), /→ #\d+ 0s true 12 · exit 0 *\n/);
    view().handleInput("\x1b");
    await done;
    await many.shutdown();
  });

  // rule: pi.md, The extension: /jobs with Enter, /tail ID [N], /kill ID on what runs and what has
  //   ended
  it("/tail: so many lines, of any process, and its usage", async () => {
    const id = idOf(await pi.call("bash_stream", { command: "seq 1 5000" }));
    const linesOf = async (args: string) => (await run("tail", args))[0]?.split("\n") ?? [];
    assert.deepEqual((await linesOf(`${id} 2`)).slice(0, 3), [
      `#${id} 0s seq 1 5000 · exit 0 · last 2 lines`, "4999", "5000",
    ]);
    assert.match((await linesOf(`#${id} 1`))[0] ?? "", / · last line$/);
    assert.equal((await linesOf(`${id}`)).length, 202);
    assert.equal((await linesOf(`${id} 99999`)).length, 2_002);
    const none = idOf(await pi.call("bash_stream", { command: "true" }));
    const [head, text] = await linesOf(`${none}`);
    assert.deepEqual([head, text], [`#${none} 0s true · exit 0`, "(no output)"]);
    const usage = ["execd: usage: /tail ID [LINES], at most 2000"];
    for (const args of ["", "x", "1 0", "1 x", "1 2 3", "-1"]) {
      assert.deepEqual(await run("tail", args), usage, args);
    }
    assert.deepEqual(await run("tail", "9999"), ["execd: no session #9999"]);
  });

  it("/tail: lines that need more than a page", async () => {
    const command = "for i in $(seq 100); do printf '%s %05000d\\n' $i 0; done";
    const id = idOf(await pi.call("bash_stream", { command }));
    const lines = (await run("tail", `${id} 60`))[0]?.split("\n") ?? [];
    assert.match(lines[0] ?? "", / · last 60 lines$/);
    assert.deepEqual([lines[1], lines[60]].map((line) => line?.split(" ")[0]), ["41", "100"]);
    assert.equal(lines[1]?.length, 5_003);
  });

  it("/tail: one line that is larger than a page shows its end", async () => {
    const command = "head -c 1000000 /dev/zero | tr '\\0' x; echo end";
    const id = idOf(await pi.call("bash_stream", { command }));
    const [head = "", line = "", ...rest] = (await run("tail", `${id} 5`))[0]?.split("\n") ?? [];
    assert.match(head, new RegExp(`^#${id} \\d+s head .* · last line$`));
    assert.match(line, /^x{1000,}end$/);
    assert.ok(rest.length <= 1, `${rest.length} more lines`);
  });

  it("/tail: nothing of the output steers the terminal", async () => {
    const command = "printf '\\033]2;x\\007\\033[2Jone\\r\\ntwo\\r10%%\\r20%%\\n\\twide\\n'";
    const id = idOf(await pi.call("bash_stream", { command }));
    const lines = (await run("tail", `${id}`))[0]?.split("\n") ?? [];
    assert.deepEqual(lines.slice(1, 4), ["one", "20%", "   wide"]);
  });

  // rule: pi.md, The extension: /jobs with Enter, /tail ID [N], /kill ID on what runs and what has
  //   ended
  it("/kill: what runs, what has ended, what is unknown", async () => {
    const params = { command: "sleep 451 & sleep 451", yieldMs: 1_000 };
    const id = idOf(await pi.call("bash_stream", params));
    assert.deepEqual(await run("kill", `${id}`), [`execd: ended #${id} sleep 451 & sleep 451`]);
    assert.deepEqual(processesWith("sleep 451"), []);
    const left = idOf(await pi.call("bash_stream", { command: "sleep 452 & echo up" }));
    assert.match((await run("kill", `${left}`))[0] ?? "",
      /it had ended already; ended what it had left in the background$/);
    assert.deepEqual(processesWith("sleep 452"), []);
    assert.match((await run("kill", `${id}`))[0] ?? "", /^execd: #\d+ .* · signal SIGTERM: it had ended /);
    assert.deepEqual(await run("kill", "9999"), ["execd: no session #9999"]);
    assert.deepEqual(await run("kill"), ["execd: usage: /kill [SIGNAL] ID"]);
  });

  it("ids that run complete; one that is complete is left for Enter", async () => {
    const params = { command: "sleep 453", yieldMs: 1_000 };
    const id = String(idOf(await pi.call("bash_stream", params)));
    const complete = (prefix: string) =>
      pi.completions.get("kill")?.(prefix)?.map(({ value }) => value) ?? null;
    assert.deepEqual(complete(""), [id]);
    assert.deepEqual(complete("#"), [id]);
    assert.deepEqual(complete("INT @"), [`INT ${id}`]);
    assert.match(pi.completions.get("kill")?.("")?.[0]?.description ?? "", /^\d+s sleep 453/);
    assert.equal(complete(id), null);
    assert.equal(complete("x"), null);
    await run("kill", id);
    assert.equal(complete(""), null);
  });

  it("without a selector /jobs is a notice", async () => {
    const plain = { ui: { notify: (text: string) => pi.notices.push(text) } };
    const before = pi.notices.length;
    await pi.commands.get("jobs")?.("", plain);
    assert.match(pi.notices[before] ?? "", /^execd: 0 sessions running: #\d+ .*; #\d+ /);
  });
});

// rule: pi.md, The extension: /jobs: what the screen has no room for scrolls and follows its size;
//   what is forgotten is said
it("/jobs says how many that have ended it knows no more", async () => {
  process.env.PI_BASH_JOBS_KEPT = "1";
  try {
    const pi = new Pi();
    await pi.start();
    for (let i = 1; i <= 3; i++) await pi.call("bash_stream", { command: `true ${i}` });
    const titles: string[] = [];
    const select = async (title: string) => void titles.push(title);
    await pi.commands.get("jobs")?.("", { ...pi.ctx, ui: { ...(pi.ctx.ui as object), select } });
    const told = "; forgotten: 2 that ended earlier (what has ended is listed for 30m, the last 1)";
    assert.deepEqual(titles, [`execd: 0 sessions running. Choose one${told}`]);
    await pi.shutdown();
  } finally {
    delete process.env.PI_BASH_JOBS_KEPT;
  }
});

// pi writes a notice over the one before it: what /tail had shown was gone with the next answer.
// rule: pi.md, Commands that you type: An answer stays when the next one comes
it("in a terminal what /tail shows stays when the next answers come, unless it is long", async () => {
  const pi = new Pi({}, { mode: "tui" });
  await pi.start();
  await pi.call("bash_stream", { command: "echo short" });
  await pi.call("bash_stream", { command: "head -c 70000 /dev/zero | tr '\\0' x" });
  const after = async (command: string, args: string) => {
    await pi.commands.get(command)?.(args, pi.ctx);
    return pi.notices.at(-1) ?? "";
  };
  assert.match(await after("tail", "1"), /^#1 [^\n]*\nshort\n/);
  assert.match(await after("kill", "1"), /^#1 [^\n]*\nshort\n[^]*\nexecd: #1 /);
  const long = await after("tail", "2");
  assert.match(long, /^#1 [^\n]*\nshort\n/);
  assert.ok(long.includes("x".repeat(70_000)));
  assert.match(await after("kill", "2"), /^execd: #2 [^\n]*$/);
  await pi.shutdown();
});

// rule: pi.md, The extension: The stream surface: six tools in the real pi; unified and stream
//   exclude each other
it("unified and stream exclude each other: the first one named is used", async () => {
  for (const [asked, used, tool] of [
    ["stream,unified", "stream", "bash_stream"],
    ["unified,stream", "unified", "exec_command"],
  ] as const) {
    const pi = new Pi({ getAllTools: () => [] });
    pi.flags["exec-tools"] = asked;
    await pi.start();
    assert.ok(pi.tools.has(tool));
    assert.equal(pi.tools.size, used === "stream" ? 6 : 5);
    const [first, second] = asked.split(",");
    assert.deepEqual(pi.notices, [
      `execd: ${first} and ${second} both have write_stdin; ${used}, which stands first in `
        + "--exec-tools, is used",
    ]);
    await pi.shutdown();
  }
});

it("pi's bash stays where bash_stream is not active", async () => {
  const tools = [{ name: "bash", sourceInfo: { source: "builtin" } }, { name: "read" }];
  const pi = new Pi({ getAllTools: () => tools });
  await pi.start();
  assert.deepEqual(pi.active, ["read", "bash", "edit"]);
  await pi.shutdown();
});

it("the widget and the footer after /tree", async () => {
  const widgets: (string[] | undefined)[] = [];
  const pi = new Pi();
  const setWidget = (_key: string, lines: string[] | undefined) => widgets.push(lines);
  Object.assign(pi.ctx.ui as object, { setWidget });
  await pi.start();
  await pi.call("bash_stream", { command: "sleep 452", yieldMs: 1_000 });
  await pi.emit("session_tree");
  assert.equal(
    widgets.at(-1)?.at(-1),
    "  /sessions shows them all: follow one, end it, send it a line",
  );
  assert.equal(pi.statuses.at(-1), "execd: 1 session running · #1 sleep 452");
  await pi.shutdown();
});

it("raw output as plain text", () => {
  assert.equal(plainText("a\r\nb\r"), "a\nb");
  assert.equal(plainText("10%\r20%\rdone\n\u001b[1mbold\u001b[0m\u0000"), "done\nbold");
});
