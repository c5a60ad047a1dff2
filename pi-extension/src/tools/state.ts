/** What the details of every result say, whichever tool gives it. */

/** Of a session: whether it runs, or how it has ended; of a call about none of them, `ok`. */
export interface State {
  /** The name of the tool. */
  operation: string;
  status: string;
  running: boolean;
}

/** What is read of details. */
type Fields = Record<string, unknown>;

/** Takes the details of a result and gives what they say of its session, or of its sessions. */
export function stateOf(operation: string, details: object): State {
  const fields = details as Fields;
  const running = runs(fields);
  return { operation, status: statusOf(fields, running), running };
}

function runs({ running, status, sessions, processes, session_id, ...others }: Fields): boolean {
  if (typeof running === "boolean") return running;
  if (typeof status === "string") return RUNNING.includes(status);
  const rows = [sessions, processes].find(Array.isArray) as Fields[] | undefined;
  if (rows) return rows.some((row) => !hasEnded(row) && runs(row));
  return session_id !== undefined && !hasEnded(others);
}

/** The words of execd for what has not ended. */
const RUNNING = ["running", "background"];

function hasEnded({ exit_code, exitCode, signal }: Fields): boolean {
  return (exit_code ?? exitCode ?? signal ?? null) !== null;
}

function statusOf(fields: Fields, running: boolean): string {
  const { status, killed_by, exit_code, failure_message } = fields;
  if (typeof status === "string") return status;
  if (running) return "running";
  if (killed_by !== undefined) return "killed";
  if (exit_code === -1 && failure_message !== undefined) return "failed";
  return hasEnded(fields) ? "exited" : "ok";
}
