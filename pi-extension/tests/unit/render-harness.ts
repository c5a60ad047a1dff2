/**
 * Draws rows as pi draws them: pi 0.87.1's own ToolExecutionComponent with its own theme around
 * our renderers, in plain Node.
 */
import assert from "node:assert/strict";
import { initTheme, ToolExecutionComponent } from "@earendil-works/pi-coding-agent";
import type { Theme, ToolDefinition } from "@earendil-works/pi-coding-agent";
import type { TUI } from "@earendil-works/pi-tui";
import { Text, visibleWidth } from "@earendil-works/pi-tui";
import type { StreamToolName, UnifiedToolName } from "../../src/render/index.ts";
import { renderers, streamRenderers } from "../../src/render/index.ts";
import type { RowContext, ToolRenderers } from "../../src/render/row.ts";

initTheme("dark");

/** The home directory that paths of the tests lie in. */
export const HOME = "/home/ada";
process.env.HOME = HOME;

/** pi's session directory in the tests. */
export const CWD = `${HOME}/project`;

/** A row as pi has it, how often it asked for a frame, and what our renderers threw. */
export interface TestRow {
  component: ToolExecutionComponent;
  frames(): number;
  failures: unknown[];
}

/** What a test gives as a tool's result; pi's types are stricter than what it passes on. */
export interface TestResult {
  text?: string;
  content?: unknown;
  details?: unknown;
  isError?: boolean;
}

/** The theme that pi gives to renderers; it does not export it. */
export const theme: Theme = captureTheme();

/** Takes what differs and gives the context of a running row, for renderers called by hand. */
export function context(over: Partial<RowContext> = {}): RowContext {
  return {
    args: {},
    toolCallId: "call-1",
    invalidate: () => {},
    lastComponent: undefined,
    state: {},
    cwd: CWD,
    executionStarted: false,
    argsComplete: false,
    isPartial: false,
    expanded: false,
    showImages: false,
    isError: false,
    ...over,
  };
}

/** Takes a tool, its arguments and its session directory and gives the row pi makes of them. */
export function row(tool: UnifiedToolName, args: unknown, cwd = CWD): TestRow {
  return drawnBy(renderers[tool], tool, args, cwd);
}

/** The same for a tool of the stream surface. */
export function streamRow(tool: StreamToolName, args: unknown, cwd = CWD): TestRow {
  return drawnBy(streamRenderers[tool], tool, args, cwd);
}

/** The same for a tool with these renderers. */
export function drawnBy(by: ToolRenderers, tool: string, args: unknown, cwd: string): TestRow {
  let frames = 0;
  const failures: unknown[] = [];
  const ui = { requestRender: () => frames++ } as unknown as TUI;
  const { renderShell, renderCall, renderResult } = by;
  // pi catches what a renderer throws and draws something plain: a test would not notice.
  const definition = {
    name: tool,
    ...(renderShell && { renderShell }),
    renderCall: watched(renderCall, failures),
    renderResult: watched(renderResult, failures),
  } as unknown as ToolDefinition;
  const component = new ToolExecutionComponent(tool, "call-1", args, {}, definition, ui, cwd);
  return { component, frames: () => frames, failures };
}

function watched<A extends unknown[], R>(work: (...args: A) => R, failures: unknown[]) {
  return (...args: A): R => {
    try {
      return work(...args);
    } catch (error) {
      failures.push(error);
      throw error;
    }
  };
}

/** Takes a row and a result and hands it over as pi does, final unless said otherwise. */
export function give(target: TestRow, result: TestResult, partial = false): void {
  const content = result.content ?? [{ type: "text", text: result.text ?? "" }];
  const given = { content, details: result.details, isError: result.isError ?? false };
  type Given = Parameters<ToolExecutionComponent["updateResult"]>[0];
  target.component.updateResult(given as Given, partial);
}

/** Takes a row and says to it what pi says when the tool starts. */
export function start(target: TestRow): void {
  target.component.setArgsComplete();
  target.component.markExecutionStarted();
}

/** Takes a row and a width and gives its lines, checked to be harmless, with pi's colours. */
export function draw(target: TestRow, width = 80): string[] {
  const lines = target.component.render(width);
  assert.deepEqual(target.failures, [], "a renderer threw");
  for (const line of lines) assertHarmless(line, width);
  return lines;
}

/** Takes a row and a width and gives what a person reads: no colours, no empty margin. */
export function screen(target: TestRow, width = 80): string[] {
  const lines = draw(target, width).map((line) => withoutColours(line).trimEnd().slice(1));
  while (lines[0] === "") lines.shift();
  while (lines.at(-1) === "") lines.pop();
  return lines;
}

/** Takes a line and gives it without the SGR sequences, which are all a theme makes. */
export function withoutColours(line: string): string {
  return line.replace(/\x1b\[[0-9;]*m/g, "");
}

/** Fails when a line holds a control, half a surrogate pair, or more cells than the width. */
export function assertHarmless(line: string, width: number): void {
  const text = withoutColours(line);
  const bad = /[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/.exec(text);
  assert.equal(bad, null, `a control reached the terminal: ${JSON.stringify(text)}`);
  assert.ok(!/\p{Surrogate}/u.test(text), `half a surrogate pair: ${JSON.stringify(text)}`);
  assert.ok(visibleWidth(line) <= width, `${visibleWidth(line)} cells of ${width}: ${text}`);
}

function captureTheme(): Theme {
  let captured: Theme | undefined;
  const ui = { requestRender: () => {} } as unknown as TUI;
  const definition = {
    name: "probe",
    renderCall: (_args: unknown, given: Theme) => {
      captured = given;
      return new Text("");
    },
  } as unknown as ToolDefinition;
  new ToolExecutionComponent("probe", "call-0", {}, {}, definition, ui, CWD);
  assert.ok(captured);
  return captured;
}
