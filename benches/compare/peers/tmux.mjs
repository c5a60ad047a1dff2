// tmux as pi-tmux-bash 0.0.13 uses it, on a server of its own. The steps, their order, the script
// around the command and the 100 ms are the package's; README.md says what was left out.
import { execSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commOf, descendantsOf } from '../lib/proc.mjs';
import { truncateTail } from '../lib/tail.mjs';
import { sleep } from '../lib/time.mjs';

export const can = { tty: true, yields: false, polls: false };

const POLL_MS = 100;
const SESSION = 'pi-background';
const DENIED = new Set(['PWD', 'OLDPWD', 'SHLVL', '_', 'TMUX', 'TMUX_PANE']);
const OPTIONS = ['git-root', 'pi-session-id', 'started-at', 'output-file', 'display-command'];
const quote = (text) => `'${text.replace(/'/g, `'\\''`)}'`;

const exportsOf = (env) =>
  Object.entries(env)
    .filter(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !DENIED.has(name))
    .map(([name, value]) => `export ${name}=${quote(value ?? '')}`)
    .join('\n');

const scriptText = (dir, id, command) => `#!/usr/bin/env bash
__window_id=$(tmux display-message -p -t "\${TMUX_PANE:-}" '#{window_id}' || printf '@0')
__exit_code_file=${quote(dir)}/${SESSION}.$__window_id.${id}
__output_file="$__exit_code_file.out"
: > "$__output_file"
printf '$ %s\\n' ${quote(command)}
${exportsOf(process.env)}
(
${command}
) 2>&1 | tee -a "$__output_file"
__rc=\${PIPESTATUS[0]}
printf '%s\\n' "$__rc" > "$__exit_code_file"
if [ -n "\${SHELL:-}" ] && [ -x "\${SHELL:-}" ]; then
  exec "$SHELL" -l
fi
exec bash -l
`;

export async function open({ scratch, socket }) {
  const tmux = `tmux -L ${socket} -f /dev/null`;
  const sh = (command) =>
    execSync(command, {
      encoding: 'utf8',
      timeout: 10_000,
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim();
  const quiet = (command) => {
    try {
      return sh(command);
    } catch {
      return null; // The package takes a failure of tmux as "there is none".
    }
  };
  mkdirSync(join(scratch, 's'), { mode: 0o700 });

  function begin(command) {
    const id = randomBytes(4).toString('hex');
    const script = join(scratch, 's', `${SESSION}.${id}.sh`);
    writeFileSync(script, scriptText(scratch, id, command), { mode: 0o755 });
    const there = quiet(`${tmux} has-session -t ${SESSION} 2>/dev/null && echo yes`) === 'yes';
    const how = there ? `new-window -d -t ${SESSION}` : `new-session -d -s ${SESSION}`;
    const name = quote(command.split(/[|;&\s]/)[0].slice(0, 30) || 'shell');
    const window = sh(`${tmux} ${how} -n ${name} -c ${quote(scratch)} -P -F '#{window_id}' ${
      quote(script)}`);
    const exitFile = join(scratch, `${SESSION}.${window}.${id}`);
    for (const option of OPTIONS) {
      const value = quote(option === 'output-file' ? `${exitFile}.out` : command);
      quiet(`${tmux} set-window-option -q -t ${window} @pi-tmux-bash-${option} ${value}`);
    }
    return { window, exitFile, log: `${exitFile}.out` };
  }

  async function exitCode(handle) {
    while (!existsSync(handle.exitFile)) await sleep(POLL_MS);
    const code = parseInt(readFileSync(handle.exitFile, 'utf8').trim());
    unlinkSync(handle.exitFile);
    return code;
  }

  // The package reads the whole log as one string; a log over 512 MiB throws here, in its words.
  async function finish(handle, onEnd) {
    const code = await exitCode(handle);
    onEnd?.();
    const output = truncateTail(readFileSync(handle.log, 'utf8')).content;
    quiet(`${tmux} kill-window -t ${handle.window}`);
    return { code, output };
  }

  // A window that stays open keeps the server alive between two commands.
  sh(`${tmux} new-session -d -s keep 'sleep 600'`);
  const server = Number(sh(`${tmux} display-message -p '#{pid}'`));
  return {
    version: sh('tmux -V').replace('tmux ', ''),
    run: (command, onEnd) => finish(begin(command), onEnd),
    start: async (command) => begin(command),
    finish,
    pend: finish,
    async key(handle, char) {
      const args = ['-L', socket, 'send-keys', '-t', handle.window, '-l', char];
      await once(spawn('tmux', args, { stdio: 'ignore' }), 'close');
    },
    processes: () => ({
      server: [server],
      tee: descendantsOf(server).filter((pid) => commOf(pid) === 'tee'),
      poller: [process.pid],
    }),
    async close() {
      quiet(`${tmux} kill-server`);
    },
  };
}
