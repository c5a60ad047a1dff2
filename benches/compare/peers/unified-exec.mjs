// pi-unified-exec's own tools in a stub of pi. The caller is in the same process, as it is in pi,
// so there is no hop between them; the whole Node process is counted.
import { createRequire } from 'node:module';
import { installHooks } from '../lib/pi-hooks.mjs';
import { createPi } from '../lib/pi-stub.mjs';

export const can = { tty: true, yields: true, polls: true };

const POLL_MS = 120_000;
const require = createRequire(import.meta.url);

export async function open({ scratch }) {
  installHooks();
  const manifest = require('pi-unified-exec/package.json');
  const extension = await import(require.resolve('pi-unified-exec/src/index.ts'));
  const { pi, call, emit } = createPi(scratch);
  await extension.default(pi);
  await emit('session_start', { reason: 'startup' });

  // A command may have ended within its first call; there is nothing to poll then.
  const handleOf = (reply) => ({
    id: reply.session_id,
    log: reply.log_path,
    total: reply.output_bytes_total,
    reply,
  });

  async function finish(handle) {
    const params = { session_id: handle.id, yield_time_ms: POLL_MS };
    let { reply } = handle;
    while (reply.running) reply = await call('write_stdin', params);
    return { code: reply.exit_code, output: reply.output };
  }

  return {
    version: manifest.version,
    run: async (cmd) =>
      finish(handleOf(await call('exec_command', { cmd, yield_time_ms: 30_000 }))),
    start: async (cmd, { tty = false } = {}) =>
      handleOf(await call('exec_command', { cmd, tty, yield_time_ms: 250 })),
    finish,
    pend: finish,
    yieldFor: (handle, ms) =>
      call('write_stdin', { session_id: handle.id, chars: 'x\\n', yield_time_ms: ms }),
    async key(handle, char, onSeen) {
      const params = { session_id: handle.id, chars: char, yield_time_ms: 250 };
      const seen = (total) => total > handle.total && onSeen();
      const reply = await call('write_stdin', params, (update) => seen(update.details.total_bytes));
      seen(reply.output_bytes_total);
      handle.total = reply.output_bytes_total;
    },
    processes: () => ({ node: [process.pid] }),
    close: () => emit('session_shutdown', { reason: 'quit' }),
  };
}
