/**
 * What the extension asks of pi. Only the required half is sure to be there: a small host (or an
 * older pi) may lack the rest, so it is used only behind a guard.
 */
import type { ExtensionAPI, ExtensionContext, ToolDefinition } from "@earendil-works/pi-coding-agent";

type Sure =
  | "registerTool"
  | "on"
  | "registerCommand"
  | "registerFlag"
  | "registerMessageRenderer"
  | "getFlag"
  | "getActiveTools"
  | "setActiveTools";

/** How a tool's rows are drawn. */
export type ToolRenderers = Pick<ToolDefinition, "renderShell" | "renderCall" | "renderResult">;

/** What newer versions of pi have besides. */
interface Newer {
  /** Chooses how the calls of a tool are drawn, also of one that is not registered. */
  registerToolRenderer(
    resolver: (name: string, next: () => ToolRenderers | undefined) => ToolRenderers | undefined,
  ): void;
}

/** pi's extension API, with everything optional that a minimal host lacks. */
export type Host = Pick<ExtensionAPI, Sure> & Partial<Omit<ExtensionAPI, Sure>> & Partial<Newer>;

type Ui = ExtensionContext["ui"];

/** pi's ui with all but notices and statuses optional. */
export type HostUi = Pick<Ui, "notify" | "setStatus"> & Partial<Ui>;

/** The context of an event or a tool call, every field optional. */
export type HostContext = Partial<Omit<ExtensionContext, "ui">> & { ui?: HostUi };

/** One tool call's surroundings, as pi hands them to `execute`. */
export interface Call {
  toolCallId: string;
  signal: AbortSignal | undefined;
  onUpdate: ((partial: ToolResult) => void) | undefined;
  ctx: HostContext;
}

/** What a tool gives back: the model reads `content`, renderers and the session file `details`. */
export interface ToolResult {
  content: { type: "text"; text: string }[];
  details: object;
}
