/** `until`, `stop` and the ids of wait_for as models write them: what is mended, and what is not. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { coerce } from "../../src/tools/coerce.ts";
import { MODELS } from "../../src/execd/models.ts";
import { mendCondition, mendId, mendIds, mendSize } from "../../src/tools/conditions.ts";
import { parametersOf } from "../../src/tools/from-table.ts";

// rule: waits.md, until and stop: What comes true in `until` ends the wait
it("a condition of loose types is mended where its meaning is plain", () => {
  const cases: [unknown, unknown][] = [
    [{ text: "ready" }, { text: "ready" }],
    [{ text: ["ready", "up"], count: "2" }, { text: ["ready", "up"], count: 2 }],
    [{ text: 200, regex: [404, "x"] }, { text: "200", regex: ["404", "x"] }],
    ['{"port":5173}', { port: 5173 }],
    [{ port: "5173" }, { port: 5173 }],
    [{ port: ":5173" }, { port: 5173 }],
    [{ port: "localhost:5173" }, { port: 5173 }],
    [{ port: "any" }, { port: "any" }],
    [{ port: true }, { port: "any" }],
    [{ port: 0 }, { port: 0 }],
    [{ http: "/health" }, { http: { path: "/health" } }],
    [{ http: "http://localhost:3000/up?x=1" }, { http: { path: "/up?x=1", port: 3000 } }],
    [{ http: "http://127.0.0.1:3000" }, { http: { path: "/", port: 3000 } }],
    [{ http: { port: "3000", path: "/", status: "200" } },
      { http: { path: "/", port: 3000, status: 200 } }],
    [{ http: { path: "/", status: ["200", 299] } }, { http: { path: "/", status: [200, 299] } }],
    [{ input: "true" }, { input: true }],
    [{ input: "any" }, { input: true }],
    [{ input: "password" }, { input: "password" }],
    [{ idleMs: "500", treeExit: "yes", idleCpu: 1 },
      { idle_ms: 500, tree_exit: true, idle_cpu: true }],
    // What is empty or false is how some models leave a field out, or all of them.
    [{ text: "", regex: [], input: false, tree_exit: false, port: null, idle_ms: 5 }, { idle_ms: 5 }],
    [{ text: null, input: false }, undefined],
    [{}, undefined],
    ["{}", undefined],
  ];
  for (const [given, taken] of cases) {
    assert.deepEqual(mendCondition(given, "snake"), taken, JSON.stringify(given));
  }
  assert.deepEqual(mendCondition({ idle_ms: 5, tree_exit: true }, "camel"),
    { idleMs: 5, treeExit: true });
});

// rule: waits.md, Limits: A field that `until` does not know is refused by its path
it("what is not plain is left for execd to refuse", () => {
  const cases = [
    "port 5173", 5, ["ready"], { foo: 1 }, { port: "http" }, { text: { a: 1 } }, { input: "maybe" },
    { http: "https://example.com/" }, { http: 3000 }, { count: "many" },
  ];
  for (const given of cases) assert.deepEqual(mendCondition(given, "snake"), given);
});

it("the sessions of wait_for are a list however they are written; no list is all", () => {
  const cases: [unknown, unknown][] = [
    [[1, 2], [1, 2]], [["1", 2], [1, 2]], [3, [3]], ["3", [3]], ["1, 2", [1, 2]], ["[1,2]", [1, 2]],
    ["1 2", [1, 2]], ["all", undefined], [["all"], undefined], [[], undefined],
    ["#1, @2", [1, 2]], [["#1"], [1]], ["both", "both"], [{}, {}],
  ];
  for (const [given, taken] of cases) assert.deepEqual(mendIds(given), taken, JSON.stringify(given));
});

// rule: pi.md, The tools: `3`, `"3"`, `"#3"` and `"@3"` are the same id
it("an id is a number however it is written; a size is an object of numbers", () => {
  for (const id of [3, "3", "#3", "@3", " #3 ", 3.0]) assert.equal(mendId(id), 3);
  for (const id of ["three", "#", "#3a", [3], {}]) assert.deepEqual(mendId(id), id);
  for (const size of ["120x30", { cols: "120", rows: 30 }, '{"cols":120,"rows":30}']) {
    assert.deepEqual(mendSize(size), { cols: 120, rows: 30 });
  }
  for (const size of ["wide", 120]) assert.deepEqual(mendSize(size), size);
});

it("the mending is in force where the arguments are brought into the schema, and in no JSON", () => {
  const { wait_for, exec_command } = MODELS.unified;
  const given = { until: '{"port":"80"}', stop: {}, session_ids: "2", other: 1 };
  assert.deepEqual(coerce(parametersOf(wait_for, {}), given),
    { until: { port: 80 }, session_ids: [2], other: 1 });
  const { until } = parametersOf(exec_command, {}).properties;
  assert.deepEqual(Object.keys(JSON.parse(JSON.stringify(until))), ["type", "description"]);
  const stream = parametersOf(MODELS.stream.poll_process, {});
  assert.deepEqual(coerce(stream, { sessionId: "#7", until: { idle_ms: "5" } }),
    { sessionId: 7, until: { idleMs: 5 } });
});
