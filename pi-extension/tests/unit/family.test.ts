/**
 * A family of tools that only this test has plugs into a session of pi by its contract alone: its
 * tool starts a session of execd and answers, and its lasting part is told of everything and handed
 * on.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { PiSession } from "../../src/session.ts";
import type { Family, FamilyContext, Lasting } from "../../src/tools/family.ts";
import { schema, text } from "../../src/tools/schema.ts";
import { answer, definition } from "../../src/tools/tool.ts";
import { Pi, until } from "./lib.ts";

const WORDS = {
  shuttingDown: "echo: shutting down", notSent: "not sent",
  noAnswer: "no answer",
};

/** What the lasting part was told, in order. */
type Told = string[];

function lasting(told: Told): Lasting {
  return {
    hasReports: true,
    flags: () => ["--no-log"],
    readSettings: (reason) => told.push(`settings at ${reason}`),
    open: (_event, _ctx, kept) => told.push(kept ? "opens with what was kept" : "opens"),
    close: async () => void told.push("closes"),
    handOn: () => {
      told.push("hands on");
      const onNotification = (method: string) => told.push(`kept: ${method}`);
      return { onNotification, lost: () => {}, close: () => told.push("kept: closes") };
    },
    end: () => told.push("ends"),
    onNotification: (method) => told.push(method),
    onReply: (reply) => told.push(`reply with ${Object.keys(reply).includes("output")}`),
    lost: () => told.push("lost"),
    mend: () => () => {},
    seen: () => [],
    awaited: () => [],
    running: 0,
  };
}

function echo(told: Told) {
  return (context: FamilyContext): Family => ({
    name: "echo",
    words: WORDS,
    lasting: lasting(told),
    tools: () => ["echo"],
    define: () => [definition(context, WORDS, {
      name: "echo",
      text: {
        label: "Echo", description: "Says it again.", promptGuidelines: [],
        parameters: schema({ said: text("What is said.") }, ["said"]),
      },
      renderers: {} as never,
      execute: async (_context, { said }, call) => {
        const cmd = `printf %s '${said}'; sleep 0.3`;
        const reply = await context.request("exec_command", { cmd }, call);
        return answer(reply.output ?? "", reply);
      },
    })],
  });
}

/** A session of pi with that family alone, on a stub of pi. */
function sessionWith(told: Told): { pi: Pi; session: PiSession } {
  const pi = new Pi();
  pi.flags["exec-tools"] = "echo";
  pi.tools.clear();
  const session = new PiSession(pi.api, [echo(told)]);
  session.load();
  return { pi, session };
}

it("a new family is one maker: its tool answers, what lasts is told of all and goes on", async () => {
  const told: Told = [];
  const { pi, session } = sessionWith(told);
  assert.deepEqual([...pi.tools.keys()], ["echo"]);
  await session.onSessionStart({ reason: "startup" }, pi.ctx);
  const result = await pi.call("echo", { said: "hello" });
  assert.equal(result.content[0]?.text, "hello");
  await until(() => told.includes("session_exited"), "the end of the session");
  assert.deepEqual(told.slice(0, 3), ["settings at startup", "opens", "session_started"]);
  // The reply and the end come at the same time.
  assert.deepEqual(told.slice(3).sort(), ["reply with true", "session_exited"]);

  told.length = 0;
  await session.onSessionShutdown("new", pi.ctx);
  assert.deepEqual(told, ["closes", "hands on"]);
  await assert.rejects(pi.call("echo", { said: "late" }), /^Error: echo: shutting down$/);
  const next = sessionWith(told);
  await next.session.onSessionStart({ reason: "new" }, next.pi.ctx);
  assert.deepEqual(told.slice(2, 4), ["settings at new", "opens with what was kept"]);
  assert.equal((await next.pi.call("echo", { said: "again" })).content[0]?.text, "again");
  await next.session.onSessionShutdown("quit", next.pi.ctx);
  assert.deepEqual(told.slice(-2), ["closes", "ends"]);
});
