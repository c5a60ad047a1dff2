/** What execd could not tell: the extension asks, and mends what it shows and waits for. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";
import { Pi, until } from "./lib.ts";

/**
 * `sessions_changed` was passed over: what had ended meanwhile stayed in the footer for good and
 * was waited for, and a wake of what had begun was neither shown nor waited for.
 */
// rule: attach.md, Several clients: After news were left out the extension asks, and mends the
//   footer, its windows and what is waited for
it("sessions_changed: asked what there is; the footer, windows and armed wakes follow", async () => {
  const script = join(import.meta.dirname, "scripts", "crowded-execd.mjs");
  process.env.EXECD_COMMAND = `'${process.execPath}' '${script}' #`;
  process.env.PI_EXECD_TOOLS = "unified,bash";
  process.env.PI_EXTENSION_CONFIG_DIR = "/no/such/directory";
  const shown = new Map<string, string | undefined>();
  const sent: string[] = [];
  const sendMessage = (message: { content: string }) => sent.push(message.content);
  const pi = new Pi({ sendMessage }, {
    mode: "json",
    ui: {
      notify: () => {},
      setStatus: (key: string, text: string | undefined) => shown.set(key, text),
    },
  });
  const footer = () => [
    shown.get("unified-exec.sessions")?.replace(/ · .*/, ""), shown.get("backgroundBashTmuxCommands"),
  ];
  try {
    await pi.start();
    await pi.call("exec_command", { cmd: "one", on_exit: "wake" });
    await pi.call("bash", { command: "w", background: true });
    await pi.call("exec_command", { cmd: "two", on_exit: "wake" });
    assert.deepEqual(footer(), ["execd: 3 sessions running", "1"]);
    await pi.call("exec_command", { cmd: "room" });
    await until(() => footer()[0] === "execd: 1 session running", "the footer is mended");
    assert.deepEqual(footer()[1], undefined, "the window is gone");

    // A run of pi -p is held for the session that is armed now, and for no other.
    await until(() => sent.splice(0).length > 0, "the window's end is told");
    await pi.emit("agent_start");
    let isHeld = true;
    const held = pi.emit("agent_end", { messages: [] }).finally(() => {
      isHeld = false;
    });
    await pi.call("exec_command", { cmd: "true" });
    assert.ok(isHeld);
    await pi.call("exec_command", { cmd: "end" });
    await held;
    await pi.emit("agent_settled");
    await until(() => sent.length > 0, "the wake is told");
    assert.match(sent.join(), /session_id=2 · exit_code=0 .*two, whose start was left out/);
    assert.deepEqual(footer(), [undefined, undefined]);
  } finally {
    await pi.shutdown();
    delete process.env.EXECD_COMMAND;
    delete process.env.PI_EXECD_TOOLS;
    delete process.env.PI_EXTENSION_CONFIG_DIR;
  }
});

/**
 * Told between two sessions of pi, when nobody takes it, it was lost: the footer counted windows
 * that had ended for good. So it did when one answer failed.
 */
// rule: attach.md, Several clients: After news were left out the extension asks, and mends the
//   footer, its windows and what is waited for
it("a session of pi that goes on with an execd asks what there is, and once more if that fails", async () => {
  const script = join(import.meta.dirname, "scripts", "crowded-execd.mjs");
  process.env.EXECD_COMMAND = `'${process.execPath}' '${script}' --fails-once #`;
  process.env.PI_EXECD_TOOLS = "bash";
  process.env.PI_EXTENSION_CONFIG_DIR = "/no/such/directory";
  const session = { sessionManager: { getSessionId: () => "m1", getSessionFile: () => "/m.jsonl" } };
  const first = new Pi({}, session);
  const second = new Pi({}, session);
  const count = (pi: Pi) => pi.footer.get("backgroundBashTmuxCommands");
  try {
    await first.start();
    await first.call("bash", { command: "w", background: true });
    assert.equal(count(first), "1");
    await first.emit("session_shutdown", { reason: "reload" });
    await second.emit("session_start", { reason: "reload" });
    assert.equal(count(second), "1", "as it was left");
    await until(() => count(second) === undefined, "the footer is mended");
  } finally {
    await second.shutdown();
    await first.shutdown();
    delete process.env.EXECD_COMMAND;
    delete process.env.PI_EXECD_TOOLS;
    delete process.env.PI_EXTENSION_CONFIG_DIR;
  }
});
