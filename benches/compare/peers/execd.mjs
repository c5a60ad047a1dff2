// execd with a client as small as one can be: lines of JSON to its stdin, lines of JSON back. The
// client is not counted; execd and its keeper are.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export const can = { tty: true, yields: true, polls: true };

const POLL_MS = 120_000;

export async function open({ binary }) {
  const child = spawn(binary, [], { stdio: ['pipe', 'pipe', 'inherit'] });
  const pending = new Map();
  let lastId = 0;
  const gone = new Promise((resolve) => {
    child.once('error', resolve);
    child.once('exit', (code, signal) => resolve(new Error(`execd ended: ${signal ?? code}`)));
  });
  gone.then((error) => {
    for (const { reject } of pending.values()) reject(error);
    pending.clear();
  });

  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.method === 'progress') {
      pending.get(message.params.request_id)?.onProgress?.(message.params.total_bytes);
    }
    if (message.id === undefined) return;
    const { resolve, reject } = pending.get(message.id);
    pending.delete(message.id);
    if (message.error) reject(new Error(message.error.message));
    else resolve(message.result);
  });

  const call = (method, params, onProgress) =>
    new Promise((resolve, reject) => {
      const id = ++lastId;
      pending.set(id, { resolve, reject, onProgress });
      child.stdin.write(`${JSON.stringify({ id, method, params })}\n`);
    });

  // `stream` is on for every wait because pi-unified-exec streams always: both then do it.
  const exec = (cmd, more) => call('exec_command', { cmd, stream: true, ...more });
  const poll = (id) =>
    call('write_stdin', { session_id: id, yield_time_ms: POLL_MS, stream: true });

  // A command may have ended within its first call; there is nothing to poll then.
  const handleOf = (reply) => ({
    id: reply.session_id,
    log: reply.log_path,
    total: reply.output_bytes_total,
    reply,
  });

  async function finish(handle) {
    let { reply } = handle;
    while (reply.session_id !== undefined) reply = await poll(handle.id);
    return { code: reply.exit_code, output: reply.output };
  }

  const info = await call('server_info', {});
  return {
    version: info.version,
    run: async (cmd) => finish(handleOf(await exec(cmd, { yield_time_ms: 30_000 }))),
    start: async (cmd, { tty = false } = {}) =>
      handleOf(await exec(cmd, { tty, yield_time_ms: 250 })),
    finish,
    pend: finish,
    yieldFor: (handle, ms) =>
      call('write_stdin', { session_id: handle.id, chars: 'x\\n', yield_time_ms: ms }),
    async key(handle, char, onSeen) {
      const params = { session_id: handle.id, chars: char, yield_time_ms: 250, stream: true };
      const seen = (total) => total > handle.total && onSeen();
      const reply = await call('write_stdin', params, seen);
      seen(reply.output_bytes_total);
      handle.total = reply.output_bytes_total;
    },
    processes: () => ({
      execd: [info.pid],
      ...(info.keeper_pid ? { keeper: [info.keeper_pid] } : {}),
    }),
    // At the end of stdin alone execd would answer pending polls first; shutdown ends them.
    async close() {
      await call('shutdown', {});
      child.stdin.end();
      await gone;
    },
  };
}
