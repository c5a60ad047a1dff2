/**
 * Commands that a person types (`!ls`): where EXECD_COMMAND says where commands run, they run there.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { exec, turn } from "./lib/model.ts";
import { execdBinary } from "./lib/paths.ts";
import { processesLike, waitNoneLike, waitProcess } from "./lib/processes.ts";
import { Rpc } from "./lib/rpc.ts";
import { scratch, type Scratch } from "./lib/scratch.ts";
import { Tui } from "./lib/tui.ts";
import { until } from "./lib/waiting.ts";

/** An execd that runs in another directory and has a variable that pi has not. */
function far(place: Scratch): { dir: string; env: Record<string, string> } {
  mkdirSync(place.path("far"), { recursive: true });
  const dir = realpathSync(place.path("far"));
  return { dir, env: { EXECD_COMMAND: `cd '${dir}' && FAR=yes exec '${execdBinary()}'` } };
}

/** `!ls` ran on this machine, whatever EXECD_COMMAND said. */
// rule: pi.md, Commands that you type: With EXECD_COMMAND they run where the model's do: output live,
//   Esc ends them, the exit status is told
test("!command runs where the model's commands run: live, its status, Esc, !!", async (t) => {
  const place = scratch(t);
  const { dir, env } = far(place);
  const tui = await Tui.start(place, { env, script: [turn("I see.")] });
  await tui.submit("!pwd; echo far=$FAR; exit 3");
  await tui.waitScreen((screen) => screen.includes(dir) && /far=yes\n[^]*\(exit 3\)/.test(screen));

  await tui.submit("!echo one; until [ -e go ]; do sleep 0.05; done; echo two$((1+1)) >&2");
  await tui.waitScreen(/\n *one *\n(?![^]*\n *two2)/);
  writeFileSync(`${dir}/go`, "");
  await tui.waitScreen(/\n *one *\n *two2 *\n/);

  await tui.submit("!echo up; sleep 7501 | cat");
  await waitProcess(place.tag, /^sleep 7501$/);
  await tui.waitScreen(/\n *up *\n/);
  await tui.key("Escape");
  await tui.waitScreen(/\(cancelled\)/);
  await waitNoneLike(place.tag, /^sleep 7501$/, 10_000);

  await tui.submit("!!echo hid$((40+2))den");
  await tui.waitScreen(/hid42den/);
  await tui.submit("what did I do?");
  await tui.waitScreen(/I see\./);
  const told = place.requests().at(-1)?.messages.map(({ text }) => text).join("\n") ?? "";
  assert.match(told, /far=yes/);
  assert.match(told, /one\ntwo2/);
  assert.doesNotMatch(told, /hid42den|event: session/, "told by pi alone, and what is hidden by nobody");
});

// rule: pi.md, Commands that you type: With EXECD_COMMAND they run where the model's do: output live,
//   Esc ends them, the exit status is told
test("rpc: statuses, signals, much output, bytes that are no text; without EXECD_COMMAND pi's own", async (t) => {
  const place = scratch(t);
  const { dir, env } = far(place);
  const rpc = new Rpc(place, { env, script: [turn("Look.", exec("true")), turn("Done.")] });
  const bash = async (command: string) =>
    (await rpc.command("bash", { command })).data as Record<string, unknown>;
  assert.deepEqual(await bash("pwd"), {
    ...(await bash("true")), output: `${dir}\n`, exitCode: 0, cancelled: false, truncated: false,
  });
  assert.equal((await bash("kill -9 $$"))["exitCode"], 137);
  assert.equal((await bash("printf 'a\\377\\303\\244b'"))["output"], "a\ufffd\u00e4b");
  assert.equal((await bash("cat; echo $PI_CODING_AGENT"))["output"], "true\n", "stdin is empty");
  const long = await bash("seq 200000");
  assert.equal(long["truncated"], true);
  const whole = Array.from({ length: 200_000 }, (_, at) => `${at + 1}\n`).join("");
  const file = String(long["fullOutputPath"]);
  // pi answers when it has ended the stream to its file, and not when all of that is written.
  await until("a file as long as the output", () => statSync(file).size >= whole.length);
  assert.equal(readFileSync(file, "utf8"), whole);

  const from = rpc.mark();
  const ended = rpc.command("bash", { command: "echo up; exec sleep 7502" });
  await waitProcess(place.tag, /^sleep 7502$/);
  await rpc.waitFor("its output", (one) => one.type === "bash_execution_update", from, 10_000)
    .catch(() => t.diagnostic("this pi sends no updates of bash"));
  await rpc.command("abort_bash");
  assert.equal((await ended).data?.["cancelled"], true);
  await waitNoneLike(place.tag, /^sleep 7502$/, 10_000);

  // What is typed is no news for the model: pi tells it, or nobody does.
  await rpc.prompt("go on");
  assert.doesNotMatch(rpc.toolEnds("exec_command").at(-1)?.text ?? "", /event: session/);

  const own = new Rpc(place, { script: [turn("Done.")] });
  const { data } = await own.command("bash", { command: "pwd; echo far=$FAR" });
  assert.equal(data?.["output"], `${place.cwd}\nfar=\n`);
  assert.deepEqual(processesLike(place.tag, /^sleep 750\d$/), []);
});

// rule: pi.md, Commands that you type: Where execd does not start, they fail, and never run here
test("an execd that does not start: the command fails, and runs nowhere", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, { env: { EXECD_COMMAND: "echo no route; exit 7" }, script: [turn("Done.")] });
  await assert.rejects(
    rpc.command("bash", { command: `touch ${place.path("ran")}` }), /EXECD_COMMAND.*exit/s,
  );
  assert.throws(() => readFileSync(place.path("ran")));
});
