/** tmuxWindowScope "all": others that cannot be asked, or are no execds at all, and mistyped names. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { type Server, type Socket, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, it } from "node:test";
import { OTHERS_MAX, askAll } from "../../src/execd/asking.ts";
import { otherExecds } from "../../src/execd/others.ts";
import { BashPi, withBash } from "./bash-lib.ts";
import { processesWith, runs, textOf } from "./lib.ts";

const scratch = mkdtempSync(join(tmpdir(), "execd-odd-"));
const before = process.env.XDG_RUNTIME_DIR;
process.env.XDG_RUNTIME_DIR = scratch;
const sockets = join(scratch, "execd");
mkdirSync(sockets, { mode: 0o700 });
after(() => {
  if (before === undefined) delete process.env.XDG_RUNTIME_DIR;
  else process.env.XDG_RUNTIME_DIR = before;
  rmSync(scratch, { recursive: true, force: true });
});

const ALL = { tmuxWindowScope: "all", tmuxEnabledActions: ["list", "peek", "kill", "poll"] };
const act = (pi: BashPi, action: string, window?: string) =>
  pi.call("tmux", { action, window }).then(textOf);
const failure = (pi: BashPi, action: string, window: string) =>
  act(pi, action, window).then((text) => assert.fail(text), (error: Error) => error.message);

/** The list, as soon as it has this: on a busy machine whoever is late is not listed. */
async function listWith(pi: BashPi, text: string): Promise<string> {
  const dueMs = Date.now() + 30_000;
  for (;;) {
    const list = await act(pi, "list");
    if (list.includes(text)) return list;
    assert.ok(Date.now() < dueMs, `${text} is not in\n${list}`);
  }
}

/** Something that listens where execds do; `answer` is given each line that it is sent. */
async function listener(
  path: string,
  answer: (socket: Socket, line: string) => void,
): Promise<Server> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (line) => answer(socket, String(line)));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return server;
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

/** What answers each request with this. */
function says(reply: object): (socket: Socket) => void {
  return (socket) => socket.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, ...reply })}\n`);
}

/** What answers `list` and `server_info` as an execd does. */
function execd(window: string, instance: string): (socket: Socket, line: string) => void {
  return (socket, line) => {
    const list = {
      text: `Background windows — 1 window(s)\n\n  ${window} @1 (3s)`, is_error: false,
      windows: [{ window: "@1", name: window, running: true }],
    };
    const look = { text: `window: ${window} @1\nin ${window}`, is_error: false };
    const result = /server_info/.test(line) ? { instance } : /"list"/.test(line) ? list : look;
    says({ result })(socket);
  };
}

/** `execd-dev:@1`, a name that no execd has, was taken for `@1`: this pi's own window was killed. */
// rule: bash.md, In pi: Windows of other pis: an address that is none acts on nothing; who cannot
//   be asked is named with the reason; odd answers, dead sockets and shared names hide nobody
it("a mistyped address acts on nothing, least of all on a window of this pi", async () => {
  for (const settings of [ALL, { tmuxEnabledActions: ALL.tmuxEnabledActions }]) {
    await withBash(settings, async (pi) => {
      await pi.call("bash", { command: "exec sleep 4713", name: "mine", background: true });
      await runs("sleep 4713");
      for (const wrong of ["execd-dev:@1", "execd-:@1", "execd-12-AB:1", "execd-12 :@1"]) {
        for (const action of ["peek", "kill"]) {
          const message = `No background window ${wrong}.`;
          assert.equal(await failure(pi, action, wrong), message);
        }
      }
      assert.equal(processesWith("sleep 4713").length, 1);
      assert.match(await act(pi, "peek", " 1"), /^window: mine @1\n/);
    });
  }
});

/**
 * Whoever could not be asked was taken for gone: its windows were left out without a word, and a
 * look said that they are not there. An answer of an odd shape failed the whole list, and escapes in
 * it reached the model.
 */
// rule: bash.md, In pi: Windows of other pis: an address that is none acts on nothing; who cannot
//   be asked is named with the reason; odd answers, dead sockets and shared names hide nobody
it("who cannot be asked is named with the reason; odd answers harm nobody else's", async () => {
  await withBash(ALL, async (pi) => {
    await pi.call("bash", { command: "exec sleep 4714", name: "mine", background: true });
    const path = join(sockets, "77.sock");
    const hungUp =
      "execd-77 hung up without an answer (it may have all the clients that it takes)";
    const unreadable = "execd-77 gave an answer that cannot be read";
    const text = "head\n\n  a @1 (3s)";
    const row = { window: "@1", name: "a", running: true };
    const big = Buffer.alloc(1024 * 1024 + 1, "a");
    const full = { id: null, error: { message: "64 clients\u001b[2J are connected" } };
    const cases: [string, (socket: Socket) => void][] = [
      [hungUp, (socket) => socket.end()],
      [hungUp, (socket) => socket.destroy()],
      ["execd-77 gave an answer of more than 1048576 bytes", (socket) => socket.write(big)],
      ["execd-77 answered with an error: 64 clients are connected", says(full)],
      ["execd-77 answered with an error: no", says({ error: { message: "no" } })],
      ["execd-77 answered with an error: no", says({ result: { is_error: true, text: "no" } })],
      ...[
        null, [], {}, { text: 5, windows: [row] }, { text, windows: null }, { text, windows: "abc" },
        { text, windows: [null] }, { text, windows: [] }, { text, windows: ["@1"] },
        { text, windows: [{ ...row, window: "@1\u001b[2J" }] }, { text: "x", windows: [row] },
      ].map((result): [string, (socket: Socket) => void] => [unreadable, says({ result })]),
    ];
    for (const [why, answer] of cases) {
      const server = await listener(path, answer);
      const list = await listWith(pi, `\n(${why}: its windows are not listed)`);
      assert.match(list, /^Background windows — \d+ window\(s\)\n\n {2}mine @1 \(\d+s\)\n/, why);
      assert.doesNotMatch(list, /execd-77:/);
      // A kill looks at the list first.
      const message = await failure(pi, "kill", "execd-77:@1");
      const isNone = message === "No background window execd-77:@1.";
      assert.ok(isNone ? why === unreadable : message.includes(`: ${why}.`), message);
      await closed(server);
    }
    const wild = await listener(path, says({
      result: { text: "h\n\n  a\u001b[2J\u001b]0;x\u0007 @1 (3s)", windows: [row] },
    }));
    await listWith(pi, "\n  a execd-77:@1 (3s)");
    assert.equal(await act(pi, "peek", "execd-77:@1"), "h\n\n  a @1 (3s)");
    await closed(wild);
    assert.equal(await failure(pi, "peek", "execd-77:@1"), "No background window execd-77:@1.");

    // As one that is stopped, with as many before us as may wait.
    const full77 = spawn("python3", ["-c", [
      "import socket, sys",
      "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(0); held = []",
      "while True:",
      "  c = socket.socket(socket.AF_UNIX); c.setblocking(False); held.append(c)",
      "  try: c.connect(sys.argv[1])",
      "  except BlockingIOError: break",
      "print('full', flush=True); sys.stdin.read()",
    ].join("\n"), path]);
    await once(full77.stdout, "data");
    const why = "execd-77 takes no more connections now (too many wait already: it may be stopped)";
    await listWith(pi, `(${why}: its windows are not listed)`);
    assert.equal(await failure(pi, "kill", "execd-77:@1"),
      `Error: execd-77:@1 could not be asked for: ${why}.`);
    full77.stdin.end();
    await once(full77, "close");
    rmSync(path);
  });
});

// rule: bash.md, In pi: tmuxWindowScope all has the windows of other pis: a look shows everything,
//   also of an execd that knows nothing else
it("an execd that refuses `all` is asked without it", async () => {
  await withBash(ALL, async (pi) => {
    await pi.call("bash", { command: "exec sleep 4716", name: "mine", background: true });
    const asked: boolean[] = [];
    const message = 'unknown param "all" (this method takes: action, window, context)';
    const refusal = { error: { code: -32602, message, data: { param: "all" } } };
    const server = await listener(join(sockets, "78.sock"), (socket, line) => {
      const hasAll = line.includes('"all":true');
      if (line.includes('"peek"')) asked.push(hasAll);
      if (hasAll) says(refusal)(socket);
      else execd("old", "0af3")(socket, line);
    });
    assert.equal(await act(pi, "peek", "execd-78:@1"), "window: old execd-78:@1\nin old");
    assert.deepEqual(asked, [true, false]);
    await closed(server);
  });
});

/** Where two execds had one name (two directories, two pid namespaces) only one was seen. */
// rule: bash.md, In pi: Windows of other pis: an address that is none acts on nothing; who cannot
//   be asked is named with the reason; odd answers, dead sockets and shared names hide nobody
it("two of one name are told apart by their instances, also from the own one", async (t) => {
  await withBash(ALL, async (pi) => {
    await pi.call("bash", { command: "exec sleep 4715", name: "mine", background: true });
    const [{ name: own } = assert.fail()] = otherExecds(undefined).others
      .filter(({ path }) => path.startsWith(sockets));
    // Without the variable each place is looked at in which somebody listens.
    delete process.env.XDG_RUNTIME_DIR;
    t.after(() => {
      process.env.XDG_RUNTIME_DIR = scratch;
    });
    const listens = async (name: string, window: string, instance: string) => {
      const dir = join(mkdtempSync(join(scratch, "run-")), "execd");
      mkdirSync(dir, { mode: 0o700 });
      const path = join(dir, `${name.slice("execd-".length)}.sock`);
      const server = await listener(path, execd(window, instance));
      t.after(() => server.close());
    };
    // No process has such a number.
    const name = `execd-${4_194_305 + process.pid}`;
    await listens(name, "one", "0af3");
    await listens(name, "two", "0bb4");
    await listens(own, "twin", "0dd6");
    for (const line of [`one ${name}-0af3:@1`, `two ${name}-0bb4:@1`, `twin ${own}-0dd6:@1`]) {
      await listWith(pi, `\n  ${line} (3s)`);
    }
    const look = await act(pi, "peek", `${name}-0bb4:@1`);
    assert.equal(look, `window: two ${name}-0bb4:@1\nin two`);
    assert.match(await failure(pi, "peek", `${name}:@1`),
      new RegExp(`^Error: several execds are called ${name}: say ${name}-0...:@1 or .*:@1\\.$`));
    const none = `No background window ${name}-0cc5:@1.`;
    assert.equal(await failure(pi, "kill", `${name}-0cc5:@1`), none);
    assert.match(await act(pi, "peek", `${own}:@1`), /^window: mine @1\n/);
    assert.match(await act(pi, "peek", `${own}-0dd6:@1`), /^window: twin /);
  });
});

/** The 64 lowest numbers were asked, and sockets that dead execds had left hid the living. */
// rule: bash.md, In pi: Windows of other pis: an address that is none acts on nothing; who cannot
//   be asked is named with the reason; odd answers, dead sockets and shared names hide nobody
it("sockets that nobody listens on hide no execd, and more than can be asked is told", async () => {
  await withBash(ALL, async (pi) => {
    const dead = Array.from({ length: OTHERS_MAX + 6 }, (_, at) => join(sockets, `${at + 1}.sock`));
    execFileSync("python3", ["-c",
      "import socket, sys\nfor p in sys.argv[1:]: socket.socket(socket.AF_UNIX).bind(p)", ...dead]);
    const living = await listener(join(sockets, "99999.sock"), execd("living", "0af3"));
    try {
      const list = await listWith(pi, "\n  living execd-99999:@1 (3s)");
      assert.doesNotMatch(list, /were not asked/);
      assert.match(await act(pi, "peek", "execd-99999:@1"), /^window: living execd-99999:@1\n/);
    } finally {
      living.close();
      for (const path of dead) rmSync(path);
    }
  });
  const many = Array.from({ length: OTHERS_MAX + 3 }, () => ({ name: "x", path: "", isShared: false }));
  const { outcomes, unasked } = await askAll(many, () => Promise.resolve(1));
  assert.deepEqual([outcomes.length, unasked], [OTHERS_MAX, 3]);
});

// rule: bash.md, In pi: Windows of other pis: an address that is none acts on nothing; who cannot
//   be asked is named with the reason; odd answers, dead sockets and shared names hide nobody
it("a directory that others may enter is told of, once, and in an answer about one there", async () => {
  await withBash(ALL, async (pi) => {
    const place = mkdtempSync(join(scratch, "open-"));
    const dir = join(place, "execd");
    mkdirSync(dir);
    chmodSync(dir, 0o755);
    const server = await listener(join(dir, "4242.sock"), execd("there", "0af3"));
    process.env.XDG_RUNTIME_DIR = place;
    try {
      const why = `others may enter ${dir}, so the execds there are not asked: chmod 700 it`;
      const list = await act(pi, "list");
      assert.equal(list.split(`\n(${why})`).length, 2, list);
      assert.equal(await failure(pi, "peek", "execd-4242:@1"),
        `Error: execd-4242:@1 could not be asked for: ${why}.`);
    } finally {
      process.env.XDG_RUNTIME_DIR = scratch;
      server.close();
    }
  });
});
