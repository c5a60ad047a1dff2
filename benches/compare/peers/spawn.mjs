// Node's child_process.spawn as a careful program would use it: the log is written with
// backpressure (without it the log stream would buffer the whole flood), the last 50 KiB are kept.
import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { MAX_BYTES, truncateTail } from '../lib/tail.mjs';
import { sleep } from '../lib/time.mjs';

export const can = { tty: false, yields: true, polls: false };

function keepTail(kept, chunk) {
  kept.chunks.push(chunk);
  kept.bytes += chunk.length;
  while (kept.bytes - kept.chunks[0].length >= MAX_BYTES) kept.bytes -= kept.chunks.shift().length;
}

function log(stream, file, kept) {
  stream.on('data', (chunk) => {
    keepTail(kept, chunk);
    if (file.write(chunk)) return;
    stream.pause();
    file.once('drain', () => stream.resume());
  });
}

export async function open({ scratch }) {
  const handles = new Set();
  let count = 0;

  function begin(command) {
    const path = join(scratch, `spawn-${++count}.log`);
    const file = createWriteStream(path);
    const kept = { chunks: [], bytes: 0 };
    const child = spawn('bash', ['-c', command], { stdio: ['pipe', 'pipe', 'pipe'] });
    child.stdin.on('error', () => {});
    log(child.stdout, file, kept);
    log(child.stderr, file, kept);
    const done = once(child, 'close').then(async ([code]) => {
      await new Promise((resolve) => file.end(resolve));
      handles.delete(handle);
      return { code, output: truncateTail(Buffer.concat(kept.chunks).toString()).content };
    });
    const handle = { child, done, log: path };
    handles.add(handle);
    return handle;
  }

  return {
    run: (command) => begin(command).done,
    start: async (command) => begin(command),
    finish: (handle) => handle.done,
    pend: (handle) => handle.done,
    // The wait of a tool call, as one would write it here: the end or a timer.
    yieldFor: (handle, ms) => Promise.race([handle.done, sleep(ms)]),
    processes: () => ({ node: [process.pid] }),
    async close() {
      const ended = [...handles].map((handle) => handle.done);
      for (const handle of handles) handle.child.kill('SIGKILL');
      await Promise.all(ended);
    },
  };
}
