import { spread } from './stats.mjs';

// The table. Cells are text; the JSON file has the numbers behind them.
const ms = (value) => (value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1)
  : value.toFixed(0));
function both(samples) {
  if (samples.length === 0) return 'n/a';
  const { p50, p99 } = spread(samples);
  return `${ms(p50)} / ${ms(p99)} ms`;
}
const mib = (kib) => `${(kib / 1024).toFixed(kib < 102400 ? 1 : 0)} MiB`;
function made(roles, text) {
  const parts = Object.entries(roles).map(([role, sum]) => `${role} ${text(sum)}`);
  return parts.length < 2 ? '' : ` (${parts.join(', ')})`;
}

function floodCell(r) {
  const wall = `${(r.wallMs / 1000).toFixed(2)} s, ${mib(r.peakKiB)}, log ${r.log}`;
  return r.reason ? `**fails**: ${r.reason}; ${wall}` : wall;
}

function chatterCell(r) {
  const cpu = (sum) => ((sum.cpuMs / r.seconds) * 10 / 1000).toFixed(2);
  return `${cpu(r)} s${made(r.roles, cpu)}; ${mib(r.rssKiB)}` +
    `${made(r.roles, (sum) => mib(sum.rssKiB))}; ${r.linesPerSecond.toFixed(0)} lines/s`;
}

function idleCell(r) {
  const wakes = (sum) => ((sum.wakeups / r.seconds) * 10).toFixed(0);
  const cpu = (sum) => ms((sum.cpuMs / r.seconds) * 10);
  return `${wakes(r)}${made(r.roles, wakes)}; ${cpu(r)} ms`;
}

const gib = (size) => (size.floodBytes >= 2 ** 30 ? `${size.floodBytes / 2 ** 30} GiB`
  : `${size.floodBytes / 2 ** 20} MiB`);

const rows = [
  ['latency', () => '`true`, p50 / p99', (r) => both(r.samples)],
  ['flood', (s) => `flood of ${gib(s)}, one call: wall, peak RSS, log`, floodCell],
  ['floodpoll', (s) => `flood of ${gib(s)}, short call and one poll`, floodCell],
  ['chatter', (s) => `${s.chatterSessions} sessions × 100 lines/s: CPU in 10 s; RSS; logged`,
    chatterCell],
  ['echo', () => 'PTY: byte to `cat` → told to the client, p50 / p99',
    (r) => both(r.shown)],
  ['echo', () => 'PTY: byte to `cat` → in the log, p50 / p99', (r) => both(r.logged)],
  ['idle', () => '8 idle sessions, 1 pending wait: wake-ups in 10 s; CPU', idleCell],
  ['yield', () => '250 ms wait: lateness, p50 / p99', (r) => both(r.samples)],
  ['notice', () => 'end of a command → result, p50 / p99', (r) => both(r.samples)],
];

function cell(entry, text) {
  if (!entry || entry.absent) return 'n/a';
  if (entry.result.failed && entry.result.wallMs === undefined) {
    return `**fails**: ${entry.result.failed.replace(/[|\n]/g, ' ').slice(0, 120)}`;
  }
  return text(entry.result);
}

export function table(report) {
  const peers = Object.entries(report.peers);
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const heads = peers.map(([, { title, version = '?', suffix = '' }]) =>
    `${title} ${version}${suffix}`);
  const body = rows
    .filter(([measure]) => peers.some(([, peer]) => peer.measures[measure]))
    .map(([measure, label, text]) =>
      line([label(report.size), ...peers.map(([, peer]) => cell(peer.measures[measure], text))]));
  const rule = line(['---', ...heads.map(() => '---')]);
  return [line(['measure', ...heads]), rule, ...body].join('\n');
}
