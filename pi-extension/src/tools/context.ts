/**
 * The port through which a tool sees the session of pi that it runs in. A tool knows nothing else
 * of that session, and nothing of the other families.
 */
import type { Client } from "../execd/client.ts";
import type { RequestOptions } from "../execd/daemon.ts";
import type { Sessions } from "../execd/sessions.ts";
import type { Reply } from "../execd/wire-results.ts";
import type { Method } from "../execd/wire.ts";
import type { Host } from "../pi/host.ts";
import type { Secrets } from "../pi/secrets.ts";
import type { SecondEsc } from "../pi/second-esc.ts";
import type { Settings } from "../pi/settings.ts";
import type { Steering } from "../pi/steering.ts";
import type { Ui } from "../pi/ui.ts";
import type { Wakes } from "../pi/wakes.ts";
import type { Failures } from "./failures.ts";

export interface ToolContext {
  /** pi itself: its settings, the bus of events between extensions. */
  readonly host: Host;
  /** What flags, variables and execd.jsonc say. */
  readonly settings: Settings;
  /** The client of execd: whether one runs, where, and what it is called. */
  readonly execd: Client;
  /** The sessions that run. */
  readonly sessions: Sessions;
  /** Asks the person for the passwords that programs ask for. */
  readonly secrets: Secrets;
  /** Ends a wait when the user has sent a message. */
  readonly steering: Steering;
  /** Sends Ctrl-C for an Esc soon after the one that has ended a wait. */
  readonly secondEsc: SecondEsc;
  /** The sessions whose end the model is to be told. */
  readonly wakes: Wakes;
  /** Notices to people. */
  readonly ui: Ui;
  /** The details of calls that have failed. */
  readonly failures: Failures;
  /**
   * Sends a request whose result is an object of fields; execd is started if need be. The params are
   * a call's, which were held against the tool's schema and not against the types of the wire.
   */
  request<M extends Method>(method: M, params: object, options: RequestOptions): Promise<Reply<M>>;
}
