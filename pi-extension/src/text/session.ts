/**
 * How people see a session, in the same words wherever one stands: in rows, lists, pickers, the
 * widget, completions and notices.
 */
import { formatAge } from "./figures.ts";
import { tildify } from "./home.ts";
import { stateWords, doingWords } from "./waits.ts";
import { oneLine } from "./width.ts";

/** The most cells of an id, a signal or a status, and of a directory. */
const LABEL_CELLS = 40;
const CWD_CELLS = 60;

/** What is read of a session, whoever tells it. */
export interface SeenSession {
  id: unknown;
  name?: unknown;
  command?: unknown;
  /** Its directory, where that is to be told. */
  cwd?: unknown;
  ageMs?: unknown;
}

/** The mark of a session whose end the model will be told. */
export const WAKE_MARK = "[wake]";

/** `1 session`, `2 sessions`. */
export function countOf(sessions: number): string {
  return `${sessions} session${sessions === 1 ? "" : "s"}`;
}

/** Takes an id in any spelling (`3`, `#3`, `@3`, `"3"`) and gives it for people: `#3`. */
export function idWords(id: unknown): string {
  const text = typeof id === "number" || typeof id === "string" ? oneLine(String(id), LABEL_CELLS) : "";
  return `#${text.replace(/^[#@]/, "") || "?"}`;
}

/** Takes an id as people write it and gives its number; undefined where it is none. */
export function idOf(word: string | undefined): number | undefined {
  const digits = /^[#@]?(\d{1,15})$/.exec(word ?? "")?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** `#2 npm run dev`, with its name before the command where it has one: `#2 web: npm run dev`. */
export function titleOf({ id, name, command }: SeenSession, cells: number): string {
  const words = [idWords(id), commandOf({ name, command }, cells)];
  return words.filter((word) => word !== "").join(" ");
}

/** `#2 41s npm run dev (~/project)`; `cells` bounds what stands for the command. */
export function labelOf(seen: SeenSession, cells: number): string {
  const { id, cwd, ageMs } = seen;
  const words = [
    idWords(id),
    typeof ageMs === "number" ? formatAge(ageMs) : "",
    commandOf(seen, cells),
    typeof cwd === "string" && cwd !== "" ? `(${oneLine(tildify(cwd), CWD_CELLS)})` : "",
  ];
  return words.filter((word) => word !== "").join(" ");
}

/** The command, behind the session's name where it has one. */
export function commandOf({ name, command }: Omit<SeenSession, "id">, cells: number): string {
  const [own, text] = [name, command].map((one) => (typeof one === "string" ? one.trim() : ""));
  // Where nobody has given a window its name, that is the command's first word.
  const isDerived = own === text?.split(/\s/, 1)[0]?.replace(/^.*\//, "");
  const said = [isDerived && text !== "" ? "" : own, text].filter((one) => one !== "");
  return oneLine(said.join(": "), cells);
}

/** How a session ended, by its status or its signal: `exit 3`, `signal SIGKILL`. */
export function endOf(exitCode: unknown, signal: unknown): string | undefined {
  const [by, code] = [signal, exitCode].map((one) =>
    typeof one === "number" || (typeof one === "string" && one !== "")
      ? oneLine(String(one), LABEL_CELLS) : undefined);
  if (by !== undefined) return `signal ${by}`;
  return code === undefined ? undefined : `exit ${code}`;
}

/**
 * Takes the fields of a session that runs, in either spelling, and gives what people are told of its
 * state: `waits for a line (python3)`, `listens on 5173 (node)`, `shell exited, output held`.
 */
export function statesOf(session: Record<string, unknown>): string[] {
  const isShellGone = (session.shell_exited ?? session.shellExited) === true;
  return [...doingWords(session), ...(isShellGone ? ["shell exited, output held"] : [])];
}

/** The one state of a session that a short line has room for; undefined where it just runs. */
export function stateOf(session: Record<string, unknown>): string | undefined {
  return stateWords(session) ?? statesOf(session).at(-1);
}

/** Takes words of execd on sessions, as a model reads them, and gives them for people. */
export function forPeople(text: string): string {
  return text
    .replace(/\bunknown (session_id|sessionId): (\d+)/g, "no session #$2")
    .replace(/\bsession (\d+) \((.*)\) was ended by the user\b/g, "#$1 $2 was ended by you")
    .replace(/\b([Ss])ession (\d+)\b/g, "#$2")
    .replace(/\bthe user pressed\b/g, "you pressed")
    .replace(/\ba message from the user came\b/g, "your message came")
    .replace(/\bexit_code[=:] ?(-?\d+)/g, "exit $1")
    .replace(/\bsignal[=:] ?(SIG\w+)/g, "signal $1")
    .replaceAll(" — ", " · ");
}
