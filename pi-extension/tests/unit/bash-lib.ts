/** The stub of pi with the bash tools, each with settings of its own. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pi } from "./lib.ts";

/** A message that the extension has given to pi. */
export interface Sent {
  customType: string;
  content: string;
  details: { windows: Record<string, unknown>[] };
  how: { triggerTurn?: boolean; deliverAs?: string };
}

/** A stub of pi with the bash tools. */
export class BashPi extends Pi {
  readonly sent: Sent[] = [];
  readonly #dir: string;

  constructor(settings: object, extra: object = {}, ctx: object = {}) {
    const dir = mkdtempSync(join(tmpdir(), "execd-bash-"));
    writeFileSync(join(dir, "tmux-bash.jsonc"), JSON.stringify(settings));
    process.env.PI_EXTENSION_CONFIG_DIR = dir;
    process.env.PI_EXECD_TOOLS = "bash";
    const sent: Sent[] = [];
    const sendMessage = (message: Omit<Sent, "how">, how: Sent["how"]) => {
      sent.push({ ...message, how });
    };
    super({ sendMessage, ...extra }, ctx);
    this.sent = sent;
    this.#dir = dir;
  }

  /** Starts pi's session with these settings, also where another test has set others since. */
  override start(): Promise<void> {
    process.env.PI_EXTENSION_CONFIG_DIR = this.#dir;
    return super.start();
  }

  override async shutdown(): Promise<void> {
    await super.shutdown();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

/** Runs `work` with a stub that has these settings, from its start to its end. */
export async function withBash<T>(
  settings: object,
  work: (pi: BashPi) => Promise<T>,
  extra: object = {},
  ctx: object = {},
): Promise<T> {
  const pi = new BashPi(settings, extra, ctx);
  await pi.start();
  try {
    return await work(pi);
  } finally {
    await pi.shutdown();
  }
}
