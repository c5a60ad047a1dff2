/**
 * rpc mode: whatever replaces or ends pi's session ends the sessions of execd.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { exec, turn } from "./lib/model.ts";
import { processesOf, waitProcess } from "./lib/processes.ts";
import { Rpc } from "./lib/rpc.ts";
import type { RpcRecord } from "./lib/rpc.ts";
import { scratch } from "./lib/scratch.ts";
import type { Scratch } from "./lib/scratch.ts";

/** A session whose processes have this number on their command line. */
function session(number: number) {
  const cmd = `sleep ${number} & exec sleep ${number}`;
  return turn(`Start ${number}.`, exec(cmd, { yield_time_ms: 250 }));
}

function alive(place: Scratch, number: number): number {
  return processesOf(place.tag).filter((one) => one.command === `sleep ${number}`).length;
}

// rule: pi.md, The extension: Sessions end at every session_shutdown
test("new, reload, fork, clone, resume, quit: the sessions end each time", async (t) => {
  const place = scratch(t);
  const numbers = [7230, 7231, 7232, 7233, 7234, 7235];
  const rpc = new Rpc(place, {
    script: numbers.flatMap((number) => [session(number), turn("Done.")]),
  });
  let firstFile = "";
  const ways: [number, () => Promise<RpcRecord | void>][] = [
    [7230, () => rpc.command("new_session")],
    [7231, () => rpc.say("/test-reload")],
    [7232, fork],
    [7233, () => rpc.command("clone")],
    [7234, () => rpc.command("switch_session", { sessionPath: firstFile })],
  ];
  for (const [number, way] of ways) {
    await begin(number);
    const state = await rpc.command("get_state");
    firstFile ||= String(state.data?.["sessionFile"]);
    await way();
    // The old session has shut down before the answer comes: nothing is waited for here.
    assert.equal(alive(place, number), 0, `${number} outlived its session`);
  }
  await begin(7235);
  const ended = await rpc.quit();
  assert.equal(ended.code, 0, rpc.stderr);
  assert.deepEqual(processesOf(place.tag), []);
  assert.equal(rpc.toolEnds("exec_command").length, numbers.length);

  async function begin(number: number) {
    await rpc.prompt(`start ${number}`);
    await waitProcess(place.tag, new RegExp(`^sleep ${number}$`));
    assert.equal(alive(place, number), 2);
    assert.equal(rpc.toolEnds("exec_command").at(-1)?.isError, false);
  }

  async function fork() {
    const answer = await rpc.command("get_fork_messages");
    const messages = answer.data?.["messages"] as { entryId: string }[];
    return rpc.command("fork", { entryId: messages[0]?.entryId });
  }
});

test("quit while a call waits, with a child that ignores SIGTERM", async (t) => {
  const place = scratch(t);
  const stubborn = "trap '' TERM; echo up; while :; do sleep 0.2; done";
  const rpc = new Rpc(place, {
    script: [turn("Start.", exec(stubborn, { yield_time_ms: 30_000 })), turn("never said")],
  });
  await rpc.say("start");
  await rpc.waitFor("its output", (one) => /"up\\n"/.test(JSON.stringify(one.partialResult ?? "")));
  const ended = await rpc.quit();
  assert.equal(ended.code, 0, rpc.stderr);
  assert.deepEqual(processesOf(place.tag), []);
  assert.ok(ended.elapsedMs < 5_000, `${ended.elapsedMs} ms to quit`);
});

// rule: pi.md, The extension: Sessions end at every session_shutdown
test("SIGTERM to pi is a quit", async (t) => {
  const place = scratch(t);
  const rpc = new Rpc(place, { script: [session(7236), turn("Done.")] });
  await rpc.prompt("start");
  assert.equal(alive(place, 7236), 2);
  rpc.signal("SIGTERM");
  await rpc.end();
  assert.deepEqual(processesOf(place.tag), []);
});
