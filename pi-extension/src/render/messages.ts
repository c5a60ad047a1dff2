/** How messages in the conversation are drawn: of sessions that have ended, of windows. */
import { Box } from "@earendil-works/pi-tui";
import { formatAge } from "../text/figures.ts";
import { endOf, idWords } from "../text/session.ts";
import { oneLine } from "../text/width.ts";
import { type Settings, lineLimit } from "./bash.ts";
import { GAP, viewBlocks } from "./body.ts";
import {
  type Fields, arrayOf, contentText, fieldsOf, labelOf, numberOf, partOf, stringOf,
} from "./fields.ts";
import { type Block, type Span, type Theme, Row, span } from "./row.ts";
import { type RowView, logLack, muted, shownPath } from "./view.ts";

const WAKE_COMMAND_CELLS = 80;
const WINDOW_COMMAND_CELLS = 200;
const PATH_CELLS = 120;
const NAME_CELLS = 60;

/** What is drawn: a message, or an entry that people see and no model reads. */
interface Message {
  content: unknown;
  details?: unknown;
}

/** What pi gives a renderer of messages; newer ones tell the keys. */
interface Options {
  expanded: boolean;
}

/** Draws a wake: two lines a session, and the whole text that the model got when expanded. */
export function renderWakeMessage(message: Message, { expanded }: Options, theme: Theme): Box {
  const sessions = arrayOf(fieldsOf(message.details).sessions);
  const views = sessions.map((ended) => wakeView(fieldsOf(ended), expanded));
  if (expanded || views.length === 0) views.push(textView(contentText(message.content)));
  return boxed(views.flatMap((view) => viewBlocks(view, expanded, {})), theme);
}

/** The renderer of messages about windows: how each stands, its command, the end of its output. */
export function windowMessageRenderer(settings: Settings) {
  return (message: Message, options: Options, theme: Theme): Box => {
    const text = contentText(message.content);
    const windows = arrayOf(fieldsOf(message.details).windows).map(fieldsOf);
    const views = windows.map((facts) => windowView(facts, text, options.expanded, settings));
    if (views.length === 0) views.push(textView(text));
    const blocks = views.map((view) => viewBlocks(view, options.expanded, options));
    return boxed(blocks.flatMap((some, i) => (i === 0 ? some : [GAP, ...some])), theme);
  };
}

function boxed(blocks: Block[], theme: Theme): Box {
  const box = new Box(1, 1, (line) => theme.bg("customMessageBg", line));
  box.addChild(new Row().show(blocks, theme));
  return box;
}

function textView(text: string): RowView {
  return { title: [[muted(text)]] };
}

function wakeView(ended: Fields, expanded: boolean): RowView {
  const lost = stringOf(ended.lost);
  const how = endOf(ended.exit_code, ended.signal);
  const ms = numberOf(ended.elapsed_ms);
  const age = ms === undefined ? "" : ` · took ${formatAge(ms)}`;
  const id = idWords(ended.session_id);
  const isGood = ended.exit_code === 0 && lost === undefined;
  const by = stringOf(ended.killed_by);
  const who = isByYou(ended) || by === undefined ? byYou(ended) : ` (${oneLine(by, NAME_CELLS)})`;
  // What pi has ended at /reload is told by no status.
  const status = how ?? (by === undefined ? "exit ?" : undefined);
  const head = lost === undefined
    ? `${id} ended${who}${status === undefined ? "" : ` · ${status}`}${age}`
    : `${id} is lost: ${oneLine(lost, PATH_CELLS)}`;
  // Who wants the log of what went well expands the message.
  const isNamed = expanded || !isGood;
  const isFar = ended.far === true;
  const path = stringOf(ended.log_path) ?? "";
  const log = isNamed ? oneLine(isFar ? path : shownPath(path), PATH_CELLS) : "";
  const lack = logLack(undefined, undefined, ended.log_from);
  const command = commandSpan(ended, WAKE_COMMAND_CELLS);
  return {
    title: [
      [outcomeSpan(isGood, head)],
      log === "" ? [command] : [command, muted(` · ${isFar ? "log there" : "log"}: ${log}${lack}`)],
    ],
  };
}

function windowView(
  facts: Fields,
  text: string,
  expanded: boolean,
  { config }: Settings,
): RowView {
  const isTruncated = facts.truncated === true;
  const kind = facts.kind === "poll" ? "poll" : "completed";
  const path = stringOf(facts.log_path);
  const isCut = isTruncated || facts.kind === "lost";
  const lack = logLack(facts.log_complete, facts.log_truncated, facts.log_from);
  const log = path && `${path}${lack}`;
  return {
    title: [[windowHead(facts)], [commandSpan(facts, WINDOW_COMMAND_CELLS)]],
    body: {
      text: partOf(text, facts.tail_at) ?? stringOf(facts.tail) ?? "",
      limit: lineLimit(config, kind, expanded, isTruncated),
    },
    notices: isCut && log ? [span(`[Full output${facts.far === true ? " there" : ""}: ${log}]`, "warning")] : [],
  };
}

function windowHead(facts: Fields): Span {
  const name = `${idWords(facts.window)} ${oneLine(labelOf(facts.name) ?? "", NAME_CELLS)}`.trimEnd();
  if (facts.kind === "poll") return span(`↻ ${name} is running`, "accent");
  if (facts.kind === "lost") return outcomeSpan(false, `${name} is lost`);
  const how = endOf(facts.exit_code, facts.signal) ?? "exit ?";
  return outcomeSpan(facts.exit_code === 0, `${name} ended${byYou(facts)} · ${how}`);
}

/** Whether the person who reads this has ended it. */
function isByYou({ killed_by: by }: Fields): boolean {
  return stringOf(by)?.startsWith("the user") === true;
}

/** ` by you`, and by what: ` by you (/reload)`. */
function byYou(facts: Fields): string {
  if (!isByYou(facts)) return "";
  const how = /^the user: (\/\w+)$/.exec(stringOf(facts.killed_by) ?? "")?.[1];
  return how === undefined ? " by you" : ` by you (${how})`;
}

function outcomeSpan(isGood: boolean, text: string): Span {
  return isGood ? span(`✓ ${text}`, "success") : span(`✕ ${text}`, "error");
}

function commandSpan(facts: Fields, cells: number): Span {
  return span(`$ ${oneLine(stringOf(facts.command) ?? "", cells)}`, "toolTitle");
}
