/**
 * A place of its own for each test: home, agent directory, working directory, temporary directory,
 * a clean environment, and a tag by which everything started from there is found again.
 */
import { randomUUID } from "node:crypto";
import {
  mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { readRequests, SCRIPT_VARIABLE, STATE_VARIABLE } from "./model.ts";
import type { ModelRequest, Turn } from "./model.ts";
import {
  CACHE_DIR, execdBinary, EXTENSION_DIR, MODEL, plainPath, SCRIPTED_MODEL,
} from "./paths.ts";
import { killAll, TAG_VARIABLE } from "./processes.ts";

const SETTINGS = {
  quietStartup: true,
  theme: "dark",
  retry: { enabled: false },
  defaultProjectTrust: "always",
  enableInstallTelemetry: false,
};

/** What a test says about the pi it wants. */
export interface PiOptions {
  /** What the model answers, in order. */
  script: Turn[];
  /** More options for pi. */
  args?: string[];
  /** Environment variables set on top of the clean ones; undefined takes one away. */
  env?: Record<string, string | undefined>;
  /** The extensions beside the model, in the order of loading; by default the one under test. */
  extensions?: string[];
}

/** The directories of one test and the processes started from them. */
export class Scratch {
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), "execd-pi-")));
  readonly tag = randomUUID();
  readonly home = join(this.dir, "home");
  readonly agentDir = join(this.dir, "agent");
  readonly cwd = join(this.home, "project");
  readonly tmp = join(this.dir, "tmp");
  readonly #endings: (() => Promise<void> | void)[] = [];

  constructor() {
    for (const dir of [this.home, this.agentDir, this.cwd, this.tmp]) mkdirSync(dir);
    writeFileSync(join(this.agentDir, "settings.json"), JSON.stringify(SETTINGS));
    this.#addPrograms();
    this.#shareCaches();
  }

  /** A path in the scratch directory. */
  path(name: string): string {
    return join(this.dir, name);
  }

  /** What is done when the test is over, before the processes are ended; last added goes first. */
  atEnd(ending: () => Promise<void> | void): void {
    this.#endings.push(ending);
  }

  /** Everything the model was asked so far. */
  requests(): ModelRequest[] {
    return readRequests(this.path("requests.jsonl"));
  }

  /** Writes the script and gives pi's environment. */
  environment(options: PiOptions): Record<string, string> {
    writeFileSync(this.path("script.json"), JSON.stringify(options.script));
    const wanted: Record<string, string | undefined> = {
      ...this.plainEnvironment(),
      [SCRIPT_VARIABLE]: this.path("script.json"),
      [STATE_VARIABLE]: this.dir,
      ...(extensionsOf(options).length === 0 ? {} : { EXECD_BIN: execdBinary() }),
      ...options.env,
    };
    return Object.fromEntries(
      Object.entries(wanted).filter((entry): entry is [string, string] => entry[1] !== undefined),
    );
  }

  /** The environment of any program run here: isolated, offline and tagged. */
  plainEnvironment(): Record<string, string> {
    return {
      PATH: plainPath(),
      HOME: this.home,
      TMPDIR: this.tmp,
      LANG: "C.UTF-8",
      TERM: "xterm-256color",
      PI_CODING_AGENT_DIR: this.agentDir,
      PI_OFFLINE: "1",
      PI_TELEMETRY: "0",
      PI_SKIP_VERSION_CHECK: "1",
      [TAG_VARIABLE]: this.tag,
    };
  }

  /** Ends what runs and removes the directory (kept with PI_TESTS_KEEP=1, to look into it). */
  async close(): Promise<void> {
    for (const ending of this.#endings.reverse()) await ending();
    await killAll(this.tag);
    if (process.env["PI_TESTS_KEEP"] === "1") console.error(`kept ${this.dir}`);
    else rmSync(this.dir, { recursive: true, force: true });
  }

  /** pi would download these, and offline it warns on every screen; nobody calls them here. */
  #addPrograms(): void {
    mkdirSync(join(this.agentDir, "bin"));
    for (const name of ["fd", "rg"]) {
      writeFileSync(join(this.agentDir, "bin", name), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    }
  }

  /** Compiling itself and the extension is four fifths of pi's start, and always the same. */
  #shareCaches(): void {
    for (const name of ["jiti", "node-compile-cache"]) {
      mkdirSync(join(CACHE_DIR, name), { recursive: true });
      symlinkSync(join(CACHE_DIR, name), join(this.tmp, name));
    }
  }
}

/** A scratch place that goes away with the test. */
export function scratch(t: TestContext): Scratch {
  const place = new Scratch();
  t.after(() => place.close());
  return place;
}

/** pi's options for the scripted model and the extension under test. */
export function piArguments(options: PiOptions): string[] {
  const extensions = [SCRIPTED_MODEL, ...extensionsOf(options)];
  // pi takes a word after an extension's flag as its value, so the test's own come first.
  return [...(options.args ?? []), "--model", MODEL, ...extensions.flatMap((one) => ["-e", one])];
}

function extensionsOf(options: PiOptions): string[] {
  return options.extensions ?? [EXTENSION_DIR];
}
