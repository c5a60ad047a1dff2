/** The commands for people. */
import type { HostContext } from "./host.ts";
import type { Instance } from "./instance.ts";
import { count, sessionLabel, WAKE_MARK } from "./ui.ts";
import type { KillResult, ListResult, SessionInfo } from "./wire.ts";

export const SESSIONS_COMMAND = "unified-exec-sessions";

/** `/unified-exec-sessions`: shows what runs; the one that is chosen is ended. */
export async function sessionsCommand(instance: Instance, ctx: HostContext): Promise<void> {
  const running = await runningSessions(instance);
  const say = (text: string, type: "info" | "warning" = "info") =>
    ctx.ui?.notify(`unified-exec: ${text}`, type);
  if (running.length === 0) return say("no live sessions");

  const labels = running.map((s) =>
    sessionLabel(s.session_id, s.elapsed_ms, s.command, marks(s)));
  const killAll = `Kill all ${count(running.length)}`;
  if (!ctx.ui?.select) return say(`${count(running.length)} running: ${labels.join("; ")}`);
  const title = `unified-exec: ${count(running.length)} running. Choose one to end it`;
  const choice = await ctx.ui.select(title, [...labels, killAll]);
  const chosen = choice === killAll
    ? running
    : running.filter((_, index) => labels[index] === choice);
  if (chosen.length === 0) return;

  const ended = await Promise.all(chosen.map((session) => kill(instance, session)));
  const killed = ended.filter(Boolean).length;
  const failed = ended.length - killed;
  if (failed === 0) return say(`killed ${count(killed)}`);
  say(`killed ${count(killed)}; ${failed} could not be ended and stay listed`, "warning");
}

function marks({ wake_armed, shell_exited }: SessionInfo): string[] {
  return [...(wake_armed ? [WAKE_MARK] : []), ...(shell_exited ? ["(shell exited)"] : [])];
}

/** People's views take nothing away from the model: no exit, no unread output. */
async function runningSessions(instance: Instance): Promise<SessionInfo[]> {
  if (!instance.client.isRunning) return [];
  const reply = await instance.client.request("list_sessions", { peek: true });
  return (reply as ListResult).sessions.filter((session) => session.running);
}

async function kill(instance: Instance, { session_id }: SessionInfo): Promise<boolean> {
  try {
    const reply = await instance.client.request("kill_session", { session_id });
    // One that has ended by itself meanwhile is as good as killed.
    return (reply as KillResult).killed !== false;
  } catch {
    return false;
  }
}
