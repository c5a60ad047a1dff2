// The comparison: every measure with every peer, one after the other, then one table.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync }
  from 'node:fs';
import { createRequire } from 'node:module';
import { cpus, release, tmpdir, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { measures, sizes } from './lib/measures.mjs';
import { killMarked, peakRssKiB } from './lib/proc.mjs';
import { table } from './lib/report.mjs';
import { checkFlood } from './lib/work.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const USAGE = 'usage: node run.mjs [--quick] [--only MEASURE,…] [--peers PEER,…] [--json FILE]';
const require = createRequire(import.meta.url);

// The Node that runs all clients and hosts: pi-unified-exec needs 22.19, and one for all is fair.
const node = join(dirname(require.resolve('node/package.json')), 'bin', 'node');
const nodeVersion = require('node/package.json').version;
const binary = process.env.EXECD ?? join(HERE, '../../target/release/execd');

const peers = {
  execd: { title: 'execd' },
  'unified-exec': { title: 'pi-unified-exec' },
  tmux: { title: 'tmux', suffix: ' as in pi-tmux-bash 0.0.13' },
  spawn: { title: 'spawn of Node', version: nodeVersion },
};

const root = mkdtempSync(join(tmpdir(), 'compare-'));
const mark = `EXECD_COMPARE=${randomBytes(8).toString('hex')}`;
const [markName, markValue] = mark.split('=');

function cleanUp() {
  killMarked(mark);
  rmSync(root, { recursive: true, force: true, maxRetries: 5 });
}

function allFiles(dir) {
  return readdirSync(dir, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

// The log is looked up on the disk, so that it is judged also when its host is dead.
function judgeLog(scratch, size) {
  const [largest] = allFiles(scratch)
    .map((path) => ({ path, size: statSync(path).size }))
    .sort((a, b) => b.size - a.size);
  return largest ? checkFlood(largest.path, size.floodBytes) : 'is missing';
}

// A short reason out of an error that may quote half a heap dump.
function shorten(text) {
  if (/heap out of memory|allocation failed/i.test(text)) return 'host aborts, out of heap';
  if (/ERR_STRING_TOO_LONG|Cannot create a string longer/.test(text)) {
    return 'call throws, string too long';
  }
  return text.replace(/\s+/g, ' ').slice(0, 100);
}

function runOne(peer, measure, sizeName, scratch) {
  const socket = `compare-${markValue}`;
  const options = { scratch, socket, binary };
  const peerFile = `./peers/${peer}.mjs`;
  const argument = JSON.stringify({ peerFile, measure, sizeName, options });
  // TMPDIR takes the peers' logs, TMUX_TMPDIR the server's socket: all of it goes with `scratch`.
  const env = { ...process.env, [markName]: markValue, TMPDIR: scratch, TMUX_TMPDIR: scratch };
  delete env.TMUX;
  const child = spawn(node, ['--no-warnings', join(HERE, 'worker.mjs'), argument], {
    cwd: HERE,
    env,
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
  });
  return new Promise((resolve) => {
    let message;
    let errors = '';
    let peakKiB = 0;
    const start = performance.now();
    const sampler = setInterval(() => (peakKiB = Math.max(peakKiB, peakRssKiB(child.pid))), 200);
    const limit = setTimeout(() => child.kill('SIGKILL'), measures[measure].limitMs);
    child.on('message', (value) => (message = value));
    child.stderr.on('data', (chunk) => (errors = (errors + chunk).slice(-20_000)));
    // 'exit', not 'close': what a dead host left behind still holds its stderr.
    child.once('exit', (code, signal) => setTimeout(() => {
      clearInterval(sampler);
      clearTimeout(limit);
      const failed = `${errors} worker ended with ${signal ?? code}`;
      const wallMs = performance.now() - start;
      const dead = measures[measure].checksLog ? { failed, wallMs, peakKiB } : { failed };
      if (!message && errors) process.stderr.write(errors);
      resolve(message ?? { result: dead });
    }, 100));
  });
}

async function measureOne(peer, measure, sizeName) {
  const scratch = join(root, `${peer}-${measure}`);
  mkdirSync(scratch, { mode: 0o700 });
  const entry = await runOne(peer, measure, sizeName, scratch);
  killMarked(mark);
  if (entry.result?.failed) entry.result.reason = shorten(entry.result.failed);
  if (entry.result && measures[measure].checksLog) {
    entry.result.log = judgeLog(scratch, sizes[sizeName]);
  }
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
  return entry;
}

// Adds a round to the ones before it; a round that failed is not tried again.
function merge(before, entry) {
  if (!before?.result || before.result.failed || !entry.result || entry.result.failed) return entry;
  for (const [key, value] of Object.entries(entry.result)) {
    if (Array.isArray(value)) entry.result[key] = [...before.result[key], ...value];
  }
  return entry;
}

async function runMeasure(report, measure, peerNames, sizeName) {
  const rounds = measures[measure].inRounds ? sizes[sizeName].rounds : 1;
  for (let round = 0; round < rounds; round++) {
    for (const name of peerNames) {
      const peer = report.peers[name];
      if (peer.measures[measure]?.absent || peer.measures[measure]?.result?.failed) continue;
      const start = performance.now();
      const entry = await measureOne(name, measure, sizeName);
      peer.measures[measure] = merge(peer.measures[measure], entry);
      peer.version ??= entry.version;
      const seconds = ((performance.now() - start) / 1000).toFixed(1);
      const note = entry.result?.reason ? `, ${entry.result.reason}` : '';
      console.error(`${measure} ${name}: ${seconds} s${note}`);
    }
  }
}

function chosen(text, known, what) {
  const names = text ? text.split(',') : Object.keys(known);
  const wrong = names.find((name) => !(name in known));
  if (wrong) throw new Error(`no ${what} "${wrong}"; there are ${Object.keys(known).join(', ')}`);
  return names;
}

async function main() {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean' },
      only: { type: 'string' },
      peers: { type: 'string' },
      json: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) return console.log(USAGE);
  const sizeName = values.quick ? 'quick' : 'full';
  const peerNames = chosen(values.peers, peers, 'peer');
  if (!existsSync(binary)) throw new Error('no execd: build it with --release or set EXECD');

  const report = {
    date: new Date().toISOString().slice(0, 10),
    machine: `${cpus().length} × ${cpus()[0].model}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, ` +
      `Linux ${release()}`,
    node: nodeVersion,
    size: sizes[sizeName],
    peers: {},
  };
  for (const name of peerNames) report.peers[name] = { ...peers[name], measures: {} };
  for (const measure of chosen(values.only, measures, 'measure')) {
    await runMeasure(report, measure, peerNames, sizeName);
  }
  console.log(`\n${report.date}; ${report.machine}; Node ${nodeVersion}\n\n${table(report)}`);
  if (values.json) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    cleanUp();
    process.exit(1);
  });
}
try {
  await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  cleanUp();
}
