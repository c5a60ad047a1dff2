/** tmuxWindowScope "all": the windows of other pis, asked over their control sockets. */
import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type Server, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, it } from "node:test";
import { Gone, Silent, ask } from "../../src/execd/asking.ts";
import { execdName, otherExecds } from "../../src/execd/others.ts";
import { BashPi, withBash } from "./bash-lib.ts";
import { processesWith, runs, textOf, until } from "./lib.ts";

const scratch = mkdtempSync(join(tmpdir(), "execd-all-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

/** Others of this user may run too, with windows of their own. */
async function listedBy(pi: BashPi): Promise<string> {
  return textOf(await pi.call("tmux", { action: "list" }));
}

/** The address of the window of this name in a list, as soon as it is there. */
async function addressOf(pi: BashPi, name: string): Promise<string> {
  for (;;) {
    // Whoever is late is not listed, so it is looked for again; the test has its own deadline.
    const found = new RegExp(`^  ${name} (execd-\\d+(?:-\\w+)?:@\\d+) \\(\\d+s\\)$`, "m")
      .exec(await listedBy(pi));
    if (found?.[1]) return found[1];
  }
}

/**
 * Each pi has an execd of its own, and "all" said nothing of those of others: with pi-tmux-bash all
 * windows lie in one tmux.
 */
// rule: bash.md, In pi: tmuxWindowScope all has the windows of other pis: list, peek, kill, by
//   addresses that are unambiguous; asked within 200 ms over sockets that can be trusted
it("all: windows of another pi are listed, looked into, ended by their address", async () => {
  const before = process.env.XDG_RUNTIME_DIR;
  process.env.XDG_RUNTIME_DIR = scratch;
  const actions = ["list", "peek", "kill", "poll"];
  try {
    await withBash({}, (first) => withBash(
      { tmuxWindowScope: "all", tmuxEnabledActions: actions },
      async (second) => {
        const start = (pi: BashPi, command: string, name: string) =>
          pi.call("bash", { command, name, background: true });
        const one = "for i in $(seq 3000); do echo line-$i; done; echo from-one; exec sleep 4711";
        await start(first, one, "dev-of-one");
        await start(second, "exec sleep 4712", "dev-of-two");
        await runs("sleep 4711");
        const address = await addressOf(second, "dev-of-one");
        const list = await listedBy(second);
        const windows = list.split("\n").filter((line) => line.startsWith("  "));
        assert.match(list, new RegExp(`^Background windows — ${windows.length} window\\(s\\)\n\n`));
        assert.match(windows[0] ?? "", /^ {2}dev-of-two @1 \(\d+s\)$/, "its own come first");
        assert.match(await listedBy(first), /— 1 window\(s\)\n\n {2}dev-of-one @1 \(\d+s\)$/);

        const silent = await listener(join(scratch, "execd", "7.sock"), undefined);
        const without = (await listedBy(second)).split("\n\n").at(-1) ?? "";
        assert.match(without,
          /^\(execd-7 did not answer within 200 ms: its windows are not listed\)$/m);
        silent.close();

        const look = (pi: BashPi, window: string, action = "peek") =>
          pi.call("tmux", { action, window }).then(textOf);
        const seen = await look(second, address);
        assert.equal(seen.split("\n")[0], `window: dev-of-one ${address}`);
        assert.match(seen, /\n\$ for i [^\n]* exec sleep 4711\n[^]*from-one/);
        // A look was a new client's, which was shown 5 KiB.
        const allLines = "everything that fits, at each look";
        assert.ok(seen.length > 15_000 && seen.includes("\nline-1500\n"), allLines);
        assert.equal(await look(second, address), seen, allLines);
        assert.match(await look(second, "@1"), /^window: dev-of-two @1\n/);
        assert.match(await look(first, address), /^window: dev-of-one @1\n/, "its own");
        const none = `No background window ${address.replace(/@1$/, "@9")}.`;
        await assert.rejects(look(second, address.replace(/@1$/, "@9")), { message: none });
        await assert.rejects(look(second, address, "poll"), {
          message: "Error: poll takes windows of this pi only; "
            + `peek shows the output of ${address}.`,
        });
        const own = join(scratch, "execd", `${address.slice("execd-".length, -":@1".length)}.sock`);
        const ofSecond = otherExecds(own).others.find(({ path }) => path.startsWith(scratch));
        const unseen = `${ofSecond?.name}:@1`;
        await assert.rejects(look(first, unseen), { message: `No background window ${unseen}.` });

        assert.equal(await look(second, address, "kill"),
          `Killed background window: dev-of-one ${address}.`);
        assert.deepEqual(processesWith("sleep 4711"), []);
        await until(() => first.sent.length === 1, "its own pi is told");
        assert.match(first.sent[0]?.content ?? "", /window: dev-of-one @1\n/);
        assert.equal(processesWith("sleep 4712").length, 1, "@1 of the other one");
        await assert.rejects(look(second, address, "kill"), {
          message: `No background window ${address}.`,
        });
      },
    ));
  } finally {
    if (before === undefined) delete process.env.XDG_RUNTIME_DIR;
    else process.env.XDG_RUNTIME_DIR = before;
  }
});

/** Something that listens as an execd does, and gives this answer or none. */
function listener(path: string, answer: string | undefined): Promise<Server> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", () => {
      const news = '{"method":"session_started","params":{}}';
      if (answer !== undefined) socket.write(`${news}\n${answer}\n`);
    });
  });
  return new Promise((resolve) => server.listen(path, () => resolve(server)));
}

// rule: bash.md, In pi: tmuxWindowScope all has the windows of other pis: list, peek, kill, by
//   addresses that are unambiguous; asked within 200 ms over sockets that can be trusted
it("who is asked: sockets of our own in directories that are closed to others", async (t) => {
  const runtime = mkdtempSync(join(scratch, "run-"));
  const dir = join(runtime, "execd");
  mkdirSync(dir, { mode: 0o700 });
  const env = { XDG_RUNTIME_DIR: runtime };
  const names = (own?: string) => otherExecds(own && join(dir, own), env).others
    .filter(({ path }) => path.startsWith(runtime)).map(({ name }) => name);
  for (const name of ["77.sock", "8.sock", "8-0af3.sock", "other.sock", "9.sock.old"]) {
    const server = await listener(join(dir, name), undefined);
    t.after(() => server.close());
  }
  writeFileSync(join(dir, "5.sock"), "no socket");
  assert.deepEqual(names(), ["execd-8", "execd-8-0af3", "execd-77"]);
  assert.deepEqual(names("8.sock"), ["execd-8-0af3", "execd-77"]);
  if (process.getuid?.() === 0) {
    chownSync(join(dir, "77.sock"), 12_345, 0);
    assert.deepEqual(names(), ["execd-8", "execd-8-0af3"], "somebody else's");
  }
  chmodSync(dir, 0o755);
  assert.deepEqual(names(), [], "anybody may have put it there");
  const open = otherExecds(undefined, env).open.filter((place) => place.dir === dir);
  assert.equal(open.length, 1, "that is told");
  assert.ok(open[0]?.names.includes("execd-8"));
  assert.equal(execdName("/run/execd/12.sock"), "execd-12");
  for (const odd of ["/run/execd/x.sock", "12", undefined, 7]) {
    assert.equal(execdName(odd), undefined);
  }
});

// rule: bash.md, In pi: tmuxWindowScope all has the windows of other pis: list, peek, kill, by
//   addresses that are unambiguous; asked within 200 ms over sockets that can be trusted
it("one that is silent, or gone, holds nobody up; an error is one", async (t) => {
  const ways = mkdtempSync(join(scratch, "ways-"));
  const at = async (name: string, answer?: string) => {
    const path = join(ways, name);
    const server = await listener(path, answer);
    t.after(() => server.close());
    return { name: "execd-1", path, isShared: false };
  };
  const silent = await at("1.sock");
  await assert.rejects(ask(silent, "tmux", { action: "list" }, 50), (error) => error instanceof Silent
    && error.message === "execd-1 did not answer within 50 ms");
  await assert.rejects(ask({ ...silent, path: join(ways, "2.sock") }, "tmux", { action: "list" }, 50), Gone);
  const failing = await at("3.sock", '{"id":1,"error":{"code":-32602,"message":"no"}}');
  await assert.rejects(ask(failing, "tmux", { action: "list" }, 5_000), {
    message: "execd-1 answered with an error: no",
  });
  const fine = await at("4.sock", '{"id":7,"result":{}}\n{"id":1,"result":{"text":"x"}}');
  assert.deepEqual(await ask(fine, "tmux", { action: "list" }, 5_000), { text: "x" });
  const stopped = new AbortController();
  const asked = ask(silent, "tmux", { action: "list" }, 60_000, stopped.signal);
  stopped.abort();
  await assert.rejects(asked, { message: "Command aborted" });
});
