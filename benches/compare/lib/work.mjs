// The commands that the peers run. bash alone is needed, and no command lives longer than a few
// minutes, so even what escaped every clean-up ends by itself.
import { closeSync, openSync, readSync, statSync } from 'node:fs';

const LINE = `${'a line of a flood, eighty columns wide with its newline '.padEnd(79, '.')}\n`;

export const floodCommand = (bytes) => `yes '${LINE.trimEnd()}' | head -c ${bytes}`;

// About 100 lines a second. `read -t` on a pipe that never has anything is a sleep inside bash: a
// sleep program would cost 6,400 processes a second and drown what is measured.
export const chatterCommand = (seconds) =>
  `exec {never}<> <(:); for ((i = 0; i < ${seconds * 100}; i++)); do ` +
  'echo "line $i of a session that says something every ten milliseconds"; ' +
  'read -t 0.01 -u $never; done';

// Compares the log with what the command has written, without holding either in memory.
export function checkFlood(path, bytes) {
  const size = statSync(path).size;
  if (size !== bytes) return `log has ${size} of ${bytes} bytes`;
  const step = LINE.length * 16384;
  const wanted = Buffer.from(LINE.repeat(16384));
  const got = Buffer.alloc(step);
  const fd = openSync(path, 'r');
  try {
    for (let at = 0; at < bytes; at += step) {
      const length = Math.min(step, bytes - at);
      let have = 0;
      while (have < length) {
        const n = readSync(fd, got, have, length - have, at + have);
        if (n === 0) return `log ends at ${at + have}`;
        have += n;
      }
      if (wanted.compare(got, 0, length, 0, length) !== 0) return `log differs near byte ${at}`;
    }
  } finally {
    closeSync(fd);
  }
  return 'identical';
}
