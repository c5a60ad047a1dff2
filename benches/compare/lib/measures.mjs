// The measures. Each runs in a process of its own with a fresh peer, and all peers get the same
// commands. `size` holds how much of it is done: the full run or --quick.
import { existsSync, readFileSync, statSync, watch } from 'node:fs';
import { difference, peakRssKiB, snapshot } from './proc.mjs';
import { now, sleep, within } from './time.mjs';
import { chatterCommand, floodCommand } from './work.mjs';

const ONE_CALL_MS = 10_000;
const FLOOD_MS = 150_000;

const logSize = (handle) => (existsSync(handle.log) ? statSync(handle.log).size : 0);

async function untilLogged(handles) {
  const logged = async () => {
    while (!handles.every((handle) => logSize(handle) > 0)) await sleep(20);
  };
  await within(30_000, 'first output in every log', logged());
}

async function latency({ peer, size }) {
  const samples = [];
  for (let i = -3; i < size.latencyRuns / size.rounds; i++) {
    const start = now();
    const { code } = await within(ONE_CALL_MS, 'true', peer.run('true'));
    if (code !== 0) throw new Error(`true ended with ${code}`);
    if (i >= 0) samples.push(now() - start); // The first three warm caches and compilers.
  }
  return { samples };
}

// A failure is a result here, so it comes back beside the time it took.
async function timedFlood(peer, work) {
  const start = now();
  let outcome;
  let completeMs;
  try {
    const { code } = await within(FLOOD_MS, 'flood', work(() => (completeMs = now() - start)));
    outcome = code === 0 ? {} : { failed: `exit code ${code}` };
  } catch (error) {
    outcome = { failed: `${error.code ?? ''} ${error.message}`.trim() };
  }
  const roles = Object.entries(peer.processes());
  const peak = roles.map(([role, pids]) => [role, Math.max(0, ...pids.map(peakRssKiB))]);
  const peakKiB = peak.reduce((sum, [, kib]) => sum + kib, 0);
  return { wallMs: completeMs ?? now() - start, peakKiB, peak, ...outcome };
}

const flood = ({ peer, size }) =>
  timedFlood(peer, (onEnd) => peer.run(floodCommand(size.floodBytes), onEnd));

const floodPoll = ({ peer, size }) =>
  timedFlood(peer, async () => peer.finish(await peer.start(floodCommand(size.floodBytes))));

async function chatter({ peer, size }) {
  const command = chatterCommand(120);
  const starts = Array.from({ length: size.chatterSessions }, () => peer.start(command));
  const handles = await within(60_000, 'start of all sessions', Promise.all(starts));
  await untilLogged(handles);
  await sleep(size.settleMs);
  const sizes = () => handles.map(logSize);
  const processes = peer.processes();
  const [before, from, start] = [snapshot(processes), sizes(), now()];
  await sleep(size.chatterMs);
  const [after, to, end] = [snapshot(processes), sizes(), now()];
  let lines = 0;
  handles.forEach(({ log }, i) => {
    for (const byte of readFileSync(log).subarray(from[i], to[i])) lines += byte === 10;
  });
  const seconds = (end - start) / 1000;
  return { ...difference(before, after), seconds, linesPerSecond: lines / seconds };
}

// The byte goes through cat itself: raw mode without echo keeps the kernel from answering for it.
async function echo({ peer, size }) {
  const command = 'stty raw -echo; echo ready; exec cat';
  const handle = await within(ONE_CALL_MS, 'cat', peer.start(command, { tty: true }));
  await untilLogged([handle]);
  await sleep(300);
  const [shown, logged] = [[], []];
  for (let i = -1; i < size.echoRuns / size.rounds; i++) {
    const before = logSize(handle);
    let watcher;
    const inLog = new Promise((resolve) => {
      watcher = watch(handle.log, () => logSize(handle) > before && resolve(now()));
    });
    let seenAt;
    const start = now();
    const sent = peer.key(handle, 'k', () => (seenAt ??= now()));
    try {
      const [loggedAt] = await within(5000, 'echo', Promise.all([inLog, sent]));
      if (i >= 0) logged.push(loggedAt - start);
    } finally {
      watcher.close();
    }
    if (i >= 0 && seenAt !== undefined) shown.push(seenAt - start);
    await sleep(30);
  }
  return { shown, logged };
}

async function idle({ peer, size }) {
  const starts = Array.from({ length: 8 }, () => peer.start('sleep 300'));
  const handles = await within(30_000, 'start of 8 sessions', Promise.all(starts));
  peer.pend(handles[0]).catch(() => {}); // It is given up when the peer closes.
  await sleep(2 * size.settleMs);
  const processes = peer.processes();
  const before = snapshot(processes);
  await sleep(size.idleMs);
  return { ...difference(before, snapshot(processes)), seconds: size.idleMs / 1000 };
}

async function lateYield({ peer, size }) {
  const handle = await within(ONE_CALL_MS, 'cat', peer.start('cat > /dev/null'));
  const samples = [];
  for (let i = -1; i < size.yieldRuns / size.rounds; i++) {
    const start = now();
    await within(ONE_CALL_MS, 'yield', peer.yieldFor(handle, 250));
    if (i >= 0) samples.push(now() - start - 250);
  }
  return { samples };
}

// The command prints the time when it is done. Its length varies, so that a poll every 100 ms is
// met at every phase.
async function lateNotice({ peer, size }) {
  const samples = [];
  for (let i = -1; i < size.noticeRuns / size.rounds; i++) {
    const command = `sleep 0.${300 + (((i + 1) * 37) % 100)}; echo $EPOCHREALTIME`;
    const { output } = await within(ONE_CALL_MS, 'sleep', peer.run(command));
    const told = performance.timeOrigin + now();
    if (i >= 0) samples.push(told - Number(output.trim().replace(',', '.')) * 1000);
  }
  return { samples };
}

// What is made of many samples is taken in rounds, peer after peer in each: a busy minute of the
// machine then hits all of them.
export const measures = {
  latency: { run: latency, needs: [], inRounds: true, limitMs: 120_000 },
  flood: { run: flood, needs: [], limitMs: 180_000, checksLog: true },
  floodpoll: { run: floodPoll, needs: ['polls'], limitMs: 180_000, checksLog: true },
  chatter: { run: chatter, needs: [], limitMs: 90_000 },
  echo: { run: echo, needs: ['tty'], inRounds: true, limitMs: 90_000 },
  idle: { run: idle, needs: [], limitMs: 60_000 },
  yield: { run: lateYield, needs: ['yields'], inRounds: true, limitMs: 120_000 },
  notice: { run: lateNotice, needs: [], inRounds: true, limitMs: 90_000 },
};

const MIB = 1024 * 1024;
export const sizes = {
  full: {
    rounds: 4, latencyRuns: 200, floodBytes: 1024 * MIB, chatterSessions: 64, chatterMs: 10_000,
    echoRuns: 60, idleMs: 10_000, yieldRuns: 80, noticeRuns: 40, settleMs: 1000,
  },
  quick: {
    rounds: 1, latencyRuns: 15, floodBytes: 64 * MIB, chatterSessions: 8, chatterMs: 1500,
    echoRuns: 6, idleMs: 2000, yieldRuns: 6, noticeRuns: 4, settleMs: 300,
  },
};
