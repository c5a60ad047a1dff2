// `execd mcp` beside a well-known shell server of the Model Context Protocol, on the five tasks that
// agents have most trouble with: the calls made, the characters of all results, the seconds until what
// was asked for is known, and what runs on when the client has gone. README.md says how to run it.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { killMarked } from './lib/proc.mjs';
import { now, sleep, within } from './lib/time.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);
const binary = process.env.EXECD ?? join(HERE, '../../target/release/execd');
const scratch = mkdtempSync(join(tmpdir(), 'mcp-compare-'));
const MARK = `COMPARE_MARK=${scratch}`;
const shows = process.argv.includes('--show');
/** Nobody would go on longer. */
const MOST_CALLS = 40;
/** The longest that a call waits by its own params, and that an answer is waited for. */
const WAIT_MS = 30_000;
const PATIENCE_MS = 90_000;
/** The steps in which clients end a server: the end of its stdin, SIGTERM, SIGKILL. */
const STEP_MS = 2_000;
/** How long what it has started may still run then. */
const TIDY_MS = 5_000;

const script = (name, text) => {
  const path = join(scratch, name);
  writeFileSync(path, text);
  return path;
};
// A server that takes 5 s until it listens, says a line each half second, and never ends.
const SERVER = script('server.py', `
import socket, time
for at in range(10):
    print(f"  building module group {at + 1} of 10", flush=True)
    time.sleep(0.5)
server = socket.create_server(("127.0.0.1", 0))
print(f"  Local:   http://localhost:{server.getsockname()[1]}/", flush=True)
time.sleep(600)
`);

/** A server, driven by lines. */
class Peer {
  constructor(words, env) {
    this.child = spawn(words[0], words.slice(1), {
      cwd: scratch, stdio: ['pipe', 'pipe', 'ignore'],
      env: { ...process.env, ...env, COMPARE_MARK: scratch },
    });
    this.waiting = new Map();
    this.lastId = 0;
    createInterface({ input: this.child.stdout }).on('line', (line) => {
      let message;
      try {
        message = JSON.parse(line);
      } catch {
        return; // Some servers write other things, too.
      }
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    });
  }

  async request(method, params) {
    const id = ++this.lastId;
    const answer = new Promise((resolve) => this.waiting.set(id, resolve));
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    const { result, error } = await within(PATIENCE_MS, method, answer);
    if (error) throw new Error(error.message);
    return result;
  }

  async open() {
    const { serverInfo } = await this.request('initialize', {
      protocolVersion: '2025-06-18', capabilities: {},
      clientInfo: { name: 'compare', version: '1' },
    });
    this.child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    this.version = serverInfo.version;
    const { tools } = await this.request('tools/list', {});
    this.listed = JSON.stringify({ tools }).length;
  }

  /** The text of a tool's result, counted. */
  async call(name, given) {
    const { content } = await this.request('tools/call', { name, arguments: given });
    const text = content.map((part) => part.text ?? '').join('');
    this.calls += 1;
    this.characters += text.length;
    if (shows) console.error(`--- ${name} ${JSON.stringify(given)}\n${text.slice(0, 1500)}`);
    return text;
  }
}

const execd = {
  title: 'execd mcp',
  open: () => new Peer([binary, 'mcp', '--log-dir', join(scratch, 'logs')], {}),
  start: (peer, cmd, waits) => peer.call('exec_command', { cmd, yield_time_ms: WAIT_MS, ...waits }),
  id: (text) => /session_id: (\d+)/.exec(text)?.[1],
  more: (peer, id) => peer.call('write_stdin', { session_id: Number(id), yield_time_ms: WAIT_MS }),
  type: (peer, id, text) => peer.call('write_stdin',
    { session_id: Number(id), chars: `${text}\\r`, until: { input: true }, yield_time_ms: WAIT_MS }),
  server: { until: { port: 'any' }, stop: { regex: '(?i)error' } },
  repl: { tty: true, until: { input: true } },
};

const commander = {
  title: 'Desktop Commander, waits of 30 s',
  open: () => {
    const home = join(scratch, 'home');
    mkdirSync(join(home, '.claude-server-commander'), { recursive: true });
    writeFileSync(join(home, '.claude-server-commander/config.json'), '{"telemetryEnabled":false}');
    const root = dirname(require.resolve('@wonderwhy-er/desktop-commander/package.json'));
    return new Peer([process.execPath, join(root, 'dist/index.js')], { HOME: home });
  },
  ...waiting(WAIT_MS),
  id: (text) => /PID (\d+)/.exec(text)?.[1],
};
/**
 * Its calls with waits of this length. It is asked for the last lines: what is new since the last call,
 * its default, leaves a line out whose beginning was read before its end.
 */
function waiting(timeout_ms) {
  return {
    start: (peer, command) => peer.call('start_process', { command, timeout_ms }),
    more: (peer, id) =>
      peer.call('read_process_output', { pid: Number(id), timeout_ms, offset: -20 }),
    type: (peer, id, input) =>
      peer.call('interact_with_process', { pid: Number(id), input, timeout_ms }),
  };
}
const hasty = { ...commander, ...waiting(10_000), title: 'Desktop Commander, waits of 10 s' };

/** Calls again until the text of all results tells what is asked for. */
async function learn(way, peer, text, knows) {
  const id = way.id(text);
  let all = text;
  while (!knows(all)) {
    if (peer.calls >= MOST_CALLS) throw new Error('never knows');
    all += await way.more(peer, id);
  }
  return { id, all };
}

const ended = (code) => (text) =>
  new RegExp(`exit[_ ]code:? ${code}\\b|code ${code}\\b`, 'i').test(text);

/** Each task does its work, and throws where the server's answers are wrong. */
const tasks = {
  'short command, its exit code': async (way, peer) => {
    const text = await way.start(peer, 'echo hi; exit 3');
    await learn(way, peer, text, (all) => all.includes('hi') && ended(3)(all));
  },
  '10 MB of output, its last line and exit code': async (way, peer) => {
    const text = await way.start(peer, 'seq 1 1400000');
    await learn(way, peer, text, (all) => all.includes('1400000\n') && ended(0)(all));
  },
  'server that listens after 5 s': async (way, peer) => {
    const text = await way.start(peer, `python3 ${SERVER}`, way.server);
    await learn(way, peer, text, (all) => /http:\/\/localhost:\d|wait: matched/.test(all));
  },
  'REPL: three lines, one takes 3 s': async (way, peer) => {
    const text = await way.start(peer, 'python3 -q -i', way.repl);
    const { id } = await learn(way, peer, text, (all) => all.includes('>>>') || way.id(all));
    for (const [line, answer] of [['6*7', '42'], ['import time; time.sleep(3); 10**9+7', '1000000007'],
      ['print("a" * 5)', 'aaaaa']]) {
      await learn({ ...way, id: () => id }, peer, await way.type(peer, id, line),
        (all) => all.includes(answer));
    }
  },
  'background child that holds the output': async (way, peer) => {
    const text = await way.start(peer, 'sleep 600 & echo started; exit 4');
    await learn(way, peer, text, (all) => all.includes('started') && ended(4)(all));
  },
};

/** The commands with this run's mark. */
function marked() {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(MARK);
    } catch {
      return false; // It has ended meanwhile.
    }
  }).map(commandOf).filter((command) => command !== '');
}

function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').join(' ').trim();
  } catch {
    return ''; // It has ended meanwhile.
  }
}

/** Ends a server as clients do; gives by what it has ended. */
async function endOf(child) {
  const gone = new Promise((resolve) => child.once('exit', () => resolve(true)));
  for (const [step, act] of [['end of stdin', () => child.stdin.end()],
    ['SIGTERM', () => child.kill('SIGTERM')], ['SIGKILL', () => child.kill('SIGKILL')]]) {
    act();
    if (await Promise.race([gone, sleep(STEP_MS).then(() => false)])) return step;
  }
  return 'nothing';
}

async function once(way, task) {
  const peer = way.open();
  let outcome = 'yes';
  await peer.open();
  [peer.calls, peer.characters] = [0, 0];
  const begun = now();
  try {
    await within(PATIENCE_MS, 'the task', task(way, peer));
  } catch (error) {
    outcome = `no (${error.message})`;
  }
  const seconds = (now() - begun) / 1000;
  const by = await endOf(peer.child);
  const deadline = now() + TIDY_MS;
  while (now() < deadline && marked().length > 0) await sleep(50);
  const left = marked();
  killMarked(MARK);
  return { outcome, seconds, left, by, peer };
}

async function main() {
  if (!existsSync(binary)) throw new Error('no execd: build it with --release or set EXECD');
  const line = (cells) => console.log(`| ${cells.join(' | ')} |`);
  line(['task', 'server', 'known', 'calls', 'characters', 'seconds', 'server ends by',
    'left running']);
  line(['---', '---', '---', '---:', '---:', '---:', '---', '---']);
  const about = new Map();
  for (const [title, task] of Object.entries(tasks)) {
    for (const way of [execd, commander, hasty]) {
      const { outcome, seconds, left, by, peer } = await once(way, task);
      const name = way.title.split(',')[0];
      about.set(name, `${name} ${peer.version}: tools/list ${peer.listed} characters`);
      line([title, way.title, outcome, peer.calls, peer.characters, seconds.toFixed(2),
        by, left.length > 0 ? left.join('; ').replaceAll(scratch, '…') : 'nothing']);
    }
  }
  for (const said of about.values()) console.log(`\n${said}`);
}

try {
  await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  killMarked(MARK);
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
}
process.exit();
