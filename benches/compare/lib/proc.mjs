// What the kernel knows about processes. All of it is read from /proc, so measuring a peer needs
// nothing from the peer itself.
import { readdirSync, readFileSync } from 'node:fs';

function read(path) {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return ''; // The process may end between two reads; it then counts as nothing.
  }
}

const threads = (pid) => {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
};

function statusNumber(text, key) {
  const found = new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(text);
  return found ? Number(found[1]) : 0;
}

// utime + stime are only told in ticks of 10 ms. The scheduler's own account is the same time in
// nanoseconds, which matters for the idle measure; ticks are the fallback.
function cpuMs(pid) {
  let ns = 0;
  for (const tid of threads(pid)) {
    ns += Number(read(`/proc/${pid}/task/${tid}/schedstat`).split(' ')[0] || 0);
  }
  if (ns > 0) return ns / 1e6;
  const fields = read(`/proc/${pid}/stat`).split(') ').pop().split(' ');
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * 10;
}

function wakeups(pid) {
  let sum = 0;
  for (const tid of threads(pid)) {
    sum += statusNumber(read(`/proc/${pid}/task/${tid}/status`), 'voluntary_ctxt_switches');
  }
  return sum;
}

export const rssKiB = (pid) => statusNumber(read(`/proc/${pid}/status`), 'VmRSS');
export const peakRssKiB = (pid) => statusNumber(read(`/proc/${pid}/status`), 'VmHWM');
export const commOf = (pid) => read(`/proc/${pid}/comm`).trim();

export function childrenOf(pid) {
  return threads(pid)
    .flatMap((tid) => read(`/proc/${pid}/task/${tid}/children`).split(' '))
    .filter((word) => /^\d+$/.test(word))
    .map(Number);
}

export const descendantsOf = (pid) =>
  childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);

// `processes` is {role: [pid…]}. The result has the same roles, so that a table can say what a
// figure is made of.
export function snapshot(processes) {
  const roles = {};
  for (const [role, pids] of Object.entries(processes)) {
    roles[role] = {};
    for (const pid of pids) {
      roles[role][pid] = { cpuMs: cpuMs(pid), wakeups: wakeups(pid), rssKiB: rssKiB(pid) };
    }
  }
  return roles;
}

export function difference(before, after) {
  const total = { cpuMs: 0, wakeups: 0, rssKiB: 0, roles: {} };
  for (const [role, pids] of Object.entries(after)) {
    const sum = { processes: 0, cpuMs: 0, wakeups: 0, rssKiB: 0 };
    for (const [pid, end] of Object.entries(pids)) {
      const start = before[role]?.[pid] ?? { cpuMs: 0, wakeups: 0 };
      sum.processes += 1;
      sum.cpuMs += end.cpuMs - start.cpuMs;
      sum.wakeups += end.wakeups - start.wakeups;
      sum.rssKiB += end.rssKiB;
    }
    total.roles[role] = sum;
    for (const key of ['cpuMs', 'wakeups', 'rssKiB']) total[key] += sum[key];
  }
  return total;
}

// Ends what carries this run's mark in its environment and nothing else. Peers put commands into
// process groups of their own, so neither a group nor a parent finds them all.
export function killMarked(mark) {
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    if (!read(`/proc/${name}/environ`).split('\0').includes(mark)) continue;
    try {
      process.kill(Number(name), 'SIGKILL');
    } catch {
      // It has ended by itself meanwhile.
    }
  }
}
