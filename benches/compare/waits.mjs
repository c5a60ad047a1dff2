// What it costs an agent to learn that a server listens, and that a build has failed: the calls it
// makes, the seconds until it knows, the characters it has to read. README.md says how to run it.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { installHooks } from './lib/pi-hooks.mjs';
import { createPi } from './lib/pi-stub.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);
const binary = process.env.EXECD ?? join(HERE, '../../target/release/execd');
const scratch = mkdtempSync(join(tmpdir(), 'waits-'));
/** Nobody would go on longer. */
const MOST_CALLS = 100;

// A dev server that builds for 20 s, says a line a second, then listens and says where.
const SERVER = `
import socket, time
for at in range(20):
    print(f"  building module group {at + 1} of 20", flush=True)
    time.sleep(1)
server = socket.create_server(("127.0.0.1", 0))
print(f"  Local:   http://localhost:{server.getsockname()[1]}/", flush=True)
time.sleep(600)
`;

// A build that goes on for a minute, as with --keep-going, and has an error after 5 s.
const BUILD = `
import time
begun = time.monotonic()
for at in range(600):
    print(f"[{at + 1}/600] Compiling unit_{at + 1}", flush=True)
    if at == 49:
        print("error[E0308]: mismatched types in unit_50", flush=True)
    time.sleep(max(0, begun + (at + 1) * 0.1 - time.monotonic()))
raise SystemExit(1)
`;

// The same one, but it stops at its error.
const SHORT_BUILD = BUILD.replace('mismatched types in unit_50", flush=True)',
  'mismatched types in unit_50", flush=True)\n        raise SystemExit(1)');

const work = (name, script) => {
  const path = join(scratch, `${name}.py`);
  writeFileSync(path, script);
  return `python3 ${path}`;
};

const scenarios = {
  server: {
    title: 'server that listens after 20 s',
    cmd: work('server', SERVER),
    until: { until: { port: 'any' }, stop: { regex: '(?i)error' } },
    knows: (text) => text.includes('http://localhost:') || /wait: matched port/.test(text),
  },
  build: {
    title: 'build with an error after 5 s, which goes on',
    cmd: work('build', BUILD),
    until: { stop: { regex: '^error' } },
    knows: (text) => text.includes('error[E0308]'),
  },
  short: {
    title: 'build that ends at its error after 5 s',
    cmd: work('short', SHORT_BUILD),
    until: { stop: { regex: '^error' } },
    knows: (text) => text.includes('error[E0308]'),
  },
};

// The text of a result as a model gets it (docs/protocol.md, Text for a model).
const textOf = ({ header, output, footer }) =>
  `${header}\n---\n${output || '(no output)'}${footer ? `\n\n${footer}` : ''}`;

async function openExecd() {
  const child = spawn(binary, ['--log-dir', join(scratch, 'logs')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const pending = new Map();
  let lastId = 0;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line);
    const waiting = pending.get(message.id);
    if (!waiting) return;
    pending.delete(message.id);
    if (message.error) waiting.reject(new Error(message.error.message));
    else waiting.resolve(message.result);
  });
  const call = (method, params) =>
    new Promise((resolve, reject) => {
      pending.set(++lastId, { resolve, reject });
      child.stdin.write(`${JSON.stringify({ id: lastId, method, params })}\n`);
    });
  const { version } = await call('server_info', {});
  return {
    version,
    async call(name, params) {
      const result = await call(name, params);
      return { text: textOf(result), id: result.session_id };
    },
    async close() {
      await call('shutdown', {});
      child.stdin.end();
    },
  };
}

async function openUnifiedExec() {
  installHooks();
  const extension = await import(require.resolve('pi-unified-exec/src/index.ts'));
  const { pi, result, emit } = createPi(scratch);
  await extension.default(pi);
  await emit('session_start', { reason: 'startup' });
  return {
    version: require('pi-unified-exec/package.json').version,
    async call(name, params) {
      const { content, details } = await result(name, params);
      return { text: content.map((part) => part.text ?? '').join(''), id: details.session_id };
    },
    close: () => emit('session_shutdown', { reason: 'quit' }),
  };
}

const WAIT_MS = 30_000;
const ways = [
  { title: 'execd, until and stop', peer: 'execd', first: ({ until }) => ({ ...until,
    yield_time_ms: 120_000 }) },
  { title: 'execd, polled with its defaults', peer: 'execd', first: () => ({}), more: {} },
  { title: 'execd, waits of 30 s', peer: 'execd', first: () => ({ yield_time_ms: WAIT_MS }),
    more: { yield_time_ms: WAIT_MS } },
  { title: 'pi-unified-exec, polled with its defaults', peer: 'unified', first: () => ({}),
    more: {} },
  { title: 'pi-unified-exec, waits of 30 s', peer: 'unified',
    first: () => ({ yield_time_ms: WAIT_MS }), more: { yield_time_ms: WAIT_MS } },
];

// An agent that asks until it has read what it wants to know. Its own thinking takes no time here.
async function learn(peer, way, scenario) {
  const start = performance.now();
  let { text, id } = await peer.call('exec_command', { cmd: scenario.cmd, ...way.first(scenario) });
  let [calls, read] = [1, text.length];
  while (!scenario.knows(text)) {
    if (id === undefined || ++calls > MOST_CALLS) throw new Error(`never knows: ${text}`);
    ({ text, id } = await peer.call('write_stdin', { session_id: id, ...way.more }));
    read += text.length;
  }
  const seconds = (performance.now() - start) / 1000;
  if (id !== undefined) await peer.call('kill_session', { session_id: id, signal: 'SIGKILL' });
  return { calls, seconds, read };
}

async function main() {
  if (!existsSync(binary)) throw new Error('no execd: build it with --release or set EXECD');
  const peers = { execd: await openExecd(), unified: await openUnifiedExec() };
  const names = process.argv.slice(2).length ? process.argv.slice(2) : Object.keys(scenarios);
  const line = (cells) => console.log(`| ${cells.join(' | ')} |`);
  console.log(`execd ${peers.execd.version}, pi-unified-exec ${peers.unified.version}, Node ${
    process.version}\n`);
  line(['work', 'way', 'calls', 'seconds', 'characters read']);
  line(['---', '---', '---:', '---:', '---:']);
  for (const name of names) {
    const scenario = scenarios[name];
    for (const way of ways) {
      const { calls, seconds, read } = await learn(peers[way.peer], way, scenario);
      line([scenario.title, way.title, calls, seconds.toFixed(1), read]);
    }
  }
  await Promise.all(Object.values(peers).map((peer) => peer.close()));
}

try {
  await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
}
process.exit();
