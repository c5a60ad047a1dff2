/**
 * What the tests of agent_execute share: the pis they run, a scripted model for them on loopback,
 * the run's events and its result.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import {
  MODEL_ID,
  ModelServer,
  modelsJson,
  PRICES,
  PROVIDER,
  QUIET_SETTINGS,
} from "../../../scripts/model-server.ts";
import type { Script, ScriptedCall, ScriptedUsage } from "../../../scripts/model-server.ts";
import { Execd, startedBy } from "./execd.ts";
import { EXTENSION_DIR } from "./paths.ts";
import { Scratch } from "./scratch.ts";
import { PATIENCE_MS } from "./waiting.ts";

/** A pi to test with. */
export interface Pi {
  version: string;
  cli: string;
}

const INSTALLED: Pi[] = [
  { version: "0.87.1", cli: "@earendil-works/pi-coding-agent/dist/bundle/cli.js" },
  { version: "0.73.1", cli: "pi-0.73/dist/cli.js" },
];

/**
 * Each pi that is installed, or the one that AGENT_PI names by its version; another one where
 * AGENT_CLI has the path of its cli.js.
 */
export const EVERY_PI: Pi[] = pisToTest();

/** The pis of most tests: an old one starts in seconds and differs in its stream alone. */
export const PIS: Pi[] = EVERY_PI.slice(0, 1);

function pisToTest(): Pi[] {
  const { AGENT_PI: wanted, AGENT_CLI: cli } = process.env;
  if (cli !== undefined) return [{ version: wanted ?? "of AGENT_CLI", cli }];
  const found = INSTALLED.filter((pi) => wanted === undefined || wanted === pi.version);
  const known = INSTALLED.map((pi) => pi.version).join(", ");
  assert.ok(found.length > 0, `AGENT_PI is none of ${known}`);
  return found.map((pi) => ({ ...pi, cli: join(EXTENSION_DIR, "node_modules", pi.cli) }));
}

/** How the scripted model is named to pi. */
export const MODEL = `${PROVIDER}/${MODEL_ID}`;

/** An agent_event without its request_id. */
export interface AgentEvent {
  event: string;
  turn?: number;
  delta?: string;
  id?: string;
  name?: string;
  input?: Record<string, unknown>;
  output?: string;
  is_error?: boolean;
  usage?: Record<string, unknown>;
  cost_usd?: number;
  attempt?: number;
  max_attempts?: number;
  message?: string;
}

/** The result of agent_execute. */
export interface AgentResult {
  success: boolean;
  output: string;
  final_output: string;
  error?: string;
  error_kind?: string;
  finish_reason: string;
  raw_stop_reason?: string;
  provider: string;
  model: string;
  response_provider?: string;
  response_model?: string;
  model_mismatch?: boolean;
  duration_ms: number;
  num_turns: number;
  tool_call_count: number;
  tool_calls: Record<string, number>;
  input_tokens: number;
  output_tokens: number;
  reasoning_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  total_tokens: number;
  cost_usd: number;
  cost: Record<string, number>;
  session_id?: string;
  executor: string;
  executor_version?: string;
  first_event_ms?: number;
  first_text_ms?: number;
  tokens_per_second?: number;
  provider_data: {
    unknown_events?: Record<string, number>;
    unknown_fields?: Record<string, unknown>;
    unparsed_lines?: number;
    retries?: { count: number; max_attempts: number; exhausted: boolean };
    compactions?: { count: number; without_usage: number };
    recovered?: number;
    events?: Record<string, unknown>[];
  };
  log_path?: string;
  exit_code?: number;
}

/** A row of list_sessions. */
export interface ListedSession {
  session_id: number;
  pid: number;
  command: string;
  running: boolean;
}

/** A run that has ended. */
export interface AgentRun {
  result: AgentResult;
  events: AgentEvent[];
}

/** A call of pi's own bash. */
export function bash(command: string): ScriptedCall {
  return { name: "bash", args: { command } };
}

/** One test: its place, its model, its pi, and an execd that is started at the first call. */
export class Stage {
  readonly place = new Scratch();
  readonly pi: Pi;
  readonly model: ModelServer;
  /**
   * A program that is this pi, but tells its version without starting it: execd asks beside each
   * first run, and 0.73 needs two seconds for that.
   */
  readonly wrapper: string;
  /** A program that is this pi. */
  readonly plainWrapper: string;
  #execd: Execd | undefined;

  private constructor(pi: Pi, model: ModelServer) {
    this.pi = pi;
    this.model = model;
    const start = `exec '${process.execPath}' '${pi.cli}' "$@"`;
    const version = `[ "$*" != --version ] || { echo ${pi.version}; exit; }`;
    this.wrapper = this.program("quick-pi", `${version}\n${start}`);
    this.plainWrapper = this.program("pi", start);
    this.place.atEnd(() => model.close());
    this.models(modelsJson(model.url));
    writeFileSync(join(this.place.agentDir, "settings.json"), JSON.stringify(QUIET_SETTINGS));
  }

  /** A stage that goes away with the test. */
  static async set(t: TestContext, pi: Pi, script: Script): Promise<Stage> {
    assert.ok(existsSync(pi.cli), `pi ${pi.version} is not installed: run npm ci`);
    const stage = new Stage(pi, await ModelServer.start(script));
    t.after(() => stage.place.close());
    return stage;
  }

  /** Its execd. */
  get execd(): Execd {
    this.#execd ??= new Execd(this.place);
    return this.#execd;
  }

  /** Has execd started with these variables, before its first call. */
  withEnvironment(env: Record<string, string>): this {
    assert.equal(this.#execd, undefined, "execd runs already");
    this.#execd = new Execd(this.place, env);
    return this;
  }

  /** Writes another models.json. */
  models(json: string): void {
    writeFileSync(join(this.place.agentDir, "models.json"), json);
  }

  /** A shell script in a directory of its own, to be called by its path or on a PATH. */
  program(name: string, body: string): string {
    const dir = this.place.path("programs");
    mkdirSync(dir, { recursive: true });
    const path = join(dir, name);
    writeFileSync(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
    return path;
  }

  /** Asks for a run and gives the request's id. */
  start(params: object = {}): number {
    const all = { prompt: "Go", model: MODEL, pi_path: this.wrapper, ...params };
    return this.execd.send("agent_execute", all);
  }

  /** Waits for the end of a run; when its result is there, nothing of it may be left. */
  async end(id: number): Promise<AgentRun> {
    const result = (await this.execd.result(id)) as unknown as AgentResult;
    assert.deepEqual(startedBy(this.place), [], "nothing is left when the result comes");
    return { result, events: this.events(id) };
  }

  /** A whole run. */
  run(params: object = {}): Promise<AgentRun> {
    return this.end(this.start(params));
  }

  /**
   * Runs with a limit, and with longer ones until pi was fast enough to do what `reached` looks for
   * within it.
   */
  async runWithin(
    limitMs: number,
    params: (limitMs: number) => object,
    reached: (run: AgentRun) => boolean,
  ): Promise<AgentRun & { limitMs: number }> {
    for (;;) {
      const run = await this.run(params(limitMs));
      if (reached(run)) return { ...run, limitMs };
      assert.ok(limitMs < PATIENCE_MS, `not within ${limitMs} ms: ${JSON.stringify(run.result)}`);
      limitMs *= 3;
    }
  }

  /** What execd lists. */
  async sessions(): Promise<ListedSession[]> {
    const list = await this.execd.call("list_sessions", { peek: true });
    return list["sessions"] as ListedSession[];
  }

  /** The events of a run so far. */
  events(id: number): AgentEvent[] {
    return this.execd.journal.records
      .filter((line) => line.method === "agent_event" && line.params?.["request_id"] === id)
      .map((line) => {
        const { request_id: _, ...event } = line.params ?? {};
        return event as unknown as AgentEvent;
      });
  }

  /** Waits for an event of a run. */
  async waitEvent(id: number, matches: (event: AgentEvent) => boolean): Promise<void> {
    await this.execd.journal.waitFor("the event", (line) =>
      line.method === "agent_event" && line.params?.["request_id"] === id &&
      matches(line.params as unknown as AgentEvent));
  }
}

/** The events in short, neighbouring deltas of one kind joined. */
export function outline(events: readonly AgentEvent[]): string[] {
  const lines: string[] = [];
  let open = "";
  for (const one of events) {
    if (one.delta !== undefined && open === one.event) {
      lines.push(`${lines.pop()}${one.delta}`);
    } else {
      lines.push(`${one.event}${shortOf(one)}`);
    }
    open = one.delta === undefined ? "" : one.event;
  }
  return lines;
}

function shortOf(one: AgentEvent): string {
  if (one.delta !== undefined) return ` ${one.delta}`;
  if (one.event === "tool_use") return ` ${one.name} ${JSON.stringify(one.input)}`;
  if (one.event === "tool_result") {
    return ` ${one.name}${one.is_error === true ? " failed" : ""}: ${one.output}`;
  }
  if (one.event === "retry") return ` ${one.attempt} of ${one.max_attempts}`;
  return one.event === "error" ? "" : ` ${one.turn}`;
}

/** Checks tokens and costs of a result against what the model said it used. */
export function assertTotals(pi: Pi, result: AgentResult, usages: ScriptedUsage[]): void {
  // 0.73 tells no reasoning tokens apart.
  const reasoningIsTold = pi.version !== "0.73.1";
  const sum = (of: (usage: ScriptedUsage) => number | undefined) =>
    usages.reduce((total, usage) => total + (of(usage) ?? 0), 0);
  const read = sum((usage) => usage.cached);
  const written = sum((usage) => usage.cacheWrite);
  const input = sum((usage) => usage.prompt) - read - written;
  const output = sum((usage) => usage.completion);
  const reasoning = reasoningIsTold ? sum((usage) => usage.reasoning) : 0;
  const { cost, cost_usd, ...tokens } = result;
  assert.deepEqual(
    {
      input: tokens.input_tokens,
      output: tokens.output_tokens,
      reasoning: tokens.reasoning_tokens,
      read: tokens.cache_read_tokens,
      written: tokens.cache_write_tokens,
      total: tokens.total_tokens,
    },
    {
      input, output: output - reasoning, reasoning, read, written,
      total: input + output + read + written,
    },
  );
  const costs = {
    input: input * PRICES.input,
    output: output * PRICES.output,
    cache_read: read * PRICES.cacheRead,
    cache_write: written * PRICES.cacheWrite,
  };
  for (const [kind, perMillion] of Object.entries(costs)) near(cost[kind], perMillion / 1e6, kind);
  const total = Object.values(costs).reduce((some, more) => some + more, 0) / 1e6;
  near(cost["total"], total, "total");
  near(cost_usd, total, "cost_usd");
}

/** Equal but for the last bits of a sum. */
function near(actual: number | undefined, expected: number, what: string): void {
  const apart = Math.abs((actual ?? Number.NaN) - expected);
  assert.ok(apart < 1e-9, `${what} is ${actual}, not ${expected}`);
}

/**
 * Why tests of what setsid(2) took away are skipped: pi's bash tool starts each command by setsid, and
 * what outlives its parent there is no member of the run (docs/agent.md, Ends).
 */
export const LEFT_BY_SETSID = "a run ends what descends from it, not what setsid took away from it";
