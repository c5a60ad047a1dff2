/**
 * A program on a terminal, mostly pi: a private tmux server whose one pane runs it, read as text.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { piCommand } from "./paths.ts";
import { piArguments } from "./scratch.ts";
import type { PiOptions, Scratch } from "./scratch.ts";
import { until } from "./waiting.ts";

const run = promisify(execFile);

const COLUMNS = 110;
const ROWS = 45;

/**
 * Runs "$@" after the first: stderr goes to $0, the exit status to $1. Ctrl-C reaches the
 * shell too, which has to live on until it has written the status.
 */
const KEEP_STATUS = 'trap : INT; status=$1; shift; "$@" 2>"$0"; echo $? >"$status"';

let started = 0;

/** What a screen is tested by. */
export type ScreenTest = RegExp | ((screen: string) => boolean);

/** A program in a terminal. */
export class Tui {
  readonly #place: Scratch;
  readonly #socket: string;
  readonly #exitFile: string;

  private constructor(place: Scratch) {
    this.#place = place;
    const name = `tui-${++started}`;
    this.#socket = place.path(`${name}.sock`);
    this.#exitFile = place.path(`${name}.exit`);
  }

  /** Starts pi in a terminal and waits until it shows its prompt. */
  static async start(place: Scratch, options: PiOptions): Promise<Tui> {
    const tui = new Tui(place);
    // Newer versions of pi take the alternate screen by default, which has no scrollback.
    const pi = [...piCommand(), ...piArguments(options), "--tui-mode", "regular"];
    await tui.#launch(place.environment(options), pi);
    await tui.waitScreen(/scripted/);
    return tui;
  }

  /** Starts another program in a terminal. Its stderr goes to the place's stderr.log. */
  static async run(place: Scratch, argv: string[], env: Record<string, string>): Promise<Tui> {
    const tui = new Tui(place);
    await tui.#launch(env, argv);
    return tui;
  }

  /** What is on the screen now. */
  screen(): Promise<string> {
    return this.#tmux("capture-pane", "-p");
  }

  /** The same with its colours. */
  screenAnsi(): Promise<string> {
    return this.#tmux("capture-pane", "-p", "-e");
  }

  /** The same with the cells behind the end of each line, which have a colour too. */
  screenCells(): Promise<string> {
    return this.#tmux("capture-pane", "-p", "-e", "-N");
  }

  /** The screen and all that scrolled off it. */
  scrollback(): Promise<string> {
    return this.#tmux("capture-pane", "-p", "-S", "-");
  }

  /** The same with its colours. */
  scrollbackAnsi(): Promise<string> {
    return this.#tmux("capture-pane", "-p", "-e", "-S", "-");
  }

  /** The terminal's title, which programs can set. */
  async title(): Promise<string> {
    return (await this.#tmux("display-message", "-p", "#{pane_title}")).trim();
  }

  /** Whether a program has switched to the alternate screen. */
  async isAlternate(): Promise<boolean> {
    return (await this.#tmux("display-message", "-p", "#{alternate_on}")).trim() === "1";
  }

  /** Keeps the screen for documentation in the directory PI_TESTS_SCREENS, where that is set. */
  async keepScreen(name: string): Promise<void> {
    const dir = process.env["PI_TESTS_SCREENS"];
    if (dir === undefined) return;
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, `${name}.txt`), await this.screen());
    writeFileSync(join(dir, `${name}.ansi`), await this.screenAnsi());
  }

  /** Types text as it is. */
  async type(text: string): Promise<void> {
    await this.#tmux("send-keys", "-l", "--", text);
  }

  /** Presses keys by tmux's names: Enter, Escape, C-o, Up. */
  async key(...names: string[]): Promise<void> {
    await this.#tmux("send-keys", ...names);
  }

  /** Types a line, waits until the editor shows it, and presses Enter. */
  async submit(line: string): Promise<void> {
    await this.type(line);
    await this.waitScreen((screen) => screen.includes(line));
    await this.key("Enter");
  }

  /** Waits until the screen matches and returns it. */
  waitScreen(test: ScreenTest, patienceMs?: number): Promise<string> {
    return this.#waitText(`the screen to match ${test}`, (text) => matches(test, text), patienceMs);
  }

  /** Waits until the screen no longer matches and returns it. */
  goneScreen(test: ScreenTest, patienceMs?: number): Promise<string> {
    const gone = (text: string) => !matches(test, text);
    return this.#waitText(`the screen not to match ${test}`, gone, patienceMs);
  }

  /** pi's exit status (as a shell counts: 128 + n for a signal), or undefined while it runs. */
  exited(): number | undefined {
    if (!existsSync(this.#exitFile)) return undefined;
    const status = readFileSync(this.#exitFile, "utf8").trim();
    return status === "" ? undefined : Number(status);
  }

  /** Waits for pi's end and gives its exit status. */
  waitExit(patienceMs?: number): Promise<number> {
    return until("pi to exit", () => this.exited(), patienceMs);
  }

  /** Gives the terminal another width, as a person does who resizes its window. */
  async resize(columns: number): Promise<void> {
    await this.#tmux("resize-window", "-x", String(columns), "-y", String(ROWS));
  }

  /** Closes the terminal under pi. */
  async close(): Promise<void> {
    // There may be no server any more, or none yet: both are fine here.
    await this.#tmux("kill-server").catch(() => "");
  }

  async #waitText(
    what: string,
    test: (text: string) => boolean,
    patienceMs?: number,
  ): Promise<string> {
    let last = "";
    const look = async () => {
      last = await this.screen();
      return test(last) && last;
    };
    return until(what, look, patienceMs, () => `the screen shows:\n${last}`);
  }

  /**
   * The pane stays when the program ends, so that its last screen can be read. Its exit status is
   * kept by a shell: tmux loses it when the terminal closes before the process.
   */
  async #launch(wanted: Record<string, string>, argv: string[]): Promise<void> {
    const env = { ...wanted, TERM: "tmux-256color" };
    const assignments = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    this.#place.atEnd(() => this.close());
    await this.#tmux(
      ...["start-server", ";", "set-option", "-g", "remain-on-exit", "on", ";"],
      ...["set-option", "-g", "history-limit", "10000", ";"],
      ...["new-session", "-d", "-x", String(COLUMNS), "-y", String(ROWS)],
      ...["-c", this.#place.cwd, "--"],
      ...["sh", "-c", KEEP_STATUS, this.#place.path("stderr.log"), this.#exitFile],
      ...["env", "-i", ...assignments.map(escapeSemicolon), ...argv.map(escapeSemicolon)],
    );
  }

  async #tmux(...args: string[]): Promise<string> {
    const env = { ...process.env, TMUX: "" };
    const argv = ["-S", this.#socket, "-f", "/dev/null", ...args];
    const { stdout } = await run("tmux", argv, { env });
    return stdout;
  }
}

/** The row of a tool call: from the line that has this text to the blank line after it. */
export function rowOf(screen: string, start: string): string {
  const lines = screen.split("\n").map((line) => line.trim());
  const first = lines.findIndex((line) => line.includes(start));
  if (first < 0) throw new Error(`no row ${start} in\n${screen}`);
  const rest = lines.slice(first);
  const end = rest.findIndex((line, index) => index > 0 && line === "" && rest[index + 1] === "");
  return rest.slice(0, end < 0 ? undefined : end).join("\n");
}

function matches(test: ScreenTest, screen: string): boolean {
  return typeof test === "function" ? test(screen) : test.test(screen);
}

/** tmux takes an argument's last semicolon as the end of a command. */
function escapeSemicolon(argument: string): string {
  return argument.replace(/;$/, "\\;");
}
