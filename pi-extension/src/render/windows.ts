/** How messages about background windows are drawn in the conversation. */
import type { MessageRenderer } from "@earendil-works/pi-coding-agent";
import { Box } from "@earendil-works/pi-tui";
import type { WindowReport } from "../bash/background.ts";
import type { TmuxBashConfig } from "../bash/config.ts";
import { lineLimit, outputBlocks } from "./bash.ts";
import { logLack } from "./body.ts";
import { arrayOf, fieldsOf, labelOf, numberOf, partOf, stringOf } from "./fields.ts";
import { contentText } from "./result.ts";
import { type Block, Row, type Span, type Theme, span } from "./row.ts";
import { oneLine } from "./safe.ts";

const COMMAND_CELLS = 200;
const NAME_CELLS = 60;

interface Settings {
  readonly config: TmuxBashConfig;
}

/** What is drawn, and how. */
export interface Card {
  /** The windows that are told of, as nobody has checked them. */
  windows: readonly unknown[];
  /** Shown where there are none. */
  text: string;
  expanded: boolean;
  /** What pi gives the renderer: newer ones tell the keys. */
  keys: object;
}

/** The renderer of both messages. */
export function windowMessageRenderer(settings: Settings): MessageRenderer {
  return (message, options, theme) => {
    const text = contentText(message.content);
    const windows = arrayOf(fieldsOf(message.details).windows);
    const card = { windows, text, expanded: options.expanded, keys: options };
    return drawCard(card, settings.config, theme);
  };
}

/** Draws a window or several: how each stands, its command, the end of its output. */
export function drawCard(card: Card, config: TmuxBashConfig, theme: Theme): Box {
  const blocks = card.windows.flatMap((window, i): Block[] => [
    ...(i === 0 ? [] : [{ kind: "gap" as const }]),
    ...windowBlocks(window, card, config),
  ]);
  const shown: Block[] = blocks.length > 0
    ? blocks
    : [{ kind: "text", spans: [span(card.text, "muted")] }];
  const box = new Box(1, 1, (line) => theme.bg("customMessageBg", line));
  box.addChild(new Row().show(shown, theme));
  return box;
}

function windowBlocks(window: unknown, card: Card, config: TmuxBashConfig): Block[] {
  const facts = fieldsOf(window);
  const kind = facts.kind === "poll" ? "poll" as const : "completed" as const;
  const limit = lineLimit(config, kind, card.expanded, facts.truncated === true);
  const path = stringOf(facts.log_path);
  const log = path && `${path}${logLack(facts.log_complete, facts.log_truncated)}`;
  const tail = partOf(card.text, facts.tail_at) ?? stringOf(facts.tail);
  const isCut = facts.truncated === true || facts.kind === "lost";
  return [
    { kind: "text", spans: headSpans(facts as unknown as WindowReport) },
    {
      kind: "text",
      spans: [span(`$ ${oneLine(stringOf(facts.command) ?? "", COMMAND_CELLS)}`, "toolTitle")],
    },
    ...outputBlocks(tail ?? "", limit, card.keys),
    ...(isCut && log ? cutBlocks(log) : []),
  ];
}

function cutBlocks(log: string): Block[] {
  return [{ kind: "gap" }, { kind: "text", spans: [span(`[Full output: ${log}]`, "warning")] }];
}

function headSpans(facts: Readonly<WindowReport>): Span[] {
  const name = `${oneLine(labelOf(facts.name) ?? "", NAME_CELLS)} ${labelOf(facts.window) ?? "?"}`;
  if (facts.kind === "poll") return [span(`⟳ ${name} is running`, "accent")];
  if (facts.kind === "lost") return [span(`✗ ${name} is lost`, "error")];
  const code = numberOf(facts.exit_code);
  const how = labelOf(facts.signal) ?? `exit code ${code ?? "?"}`;
  return code === 0
    ? [span(`✓ ${name} finished · ${how}`, "success")]
    : [span(`✗ ${name} finished · ${how}`, "error")];
}
