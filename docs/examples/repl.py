"""Drives a program that asks for line after line: here Python's own prompt.

    python3 repl.py '6 * 7' 'import os' 'os.getcwd()'

No prompt has to be known: `until: {"input": true}` ends a wait when the program reads its input.
"""

import sys

from execd_client import Execd

WAIT = {"until": {"input": True}, "yield_time_ms": 60000}


class Repl:
    def __init__(self, execd, command):
        self.execd = execd
        start = execd.call("exec_command", cmd=command, tty=True, **WAIT)
        self._check(start)
        self.session = start["session_id"]

    def ask(self, line):
        """Sends a line; gives what the program printed until it asked for the next one."""
        reply = self.execd.call("write_stdin", session_id=self.session, chars=line + "\n", **WAIT)
        self._check(reply)
        # A terminal shows the line that was typed first, and the next prompt last.
        return "\n".join(reply["output"].splitlines()[1:-1])

    @staticmethod
    def _check(reply):
        outcome = reply.get("wait", {}).get("outcome")
        if outcome != "matched":
            raise RuntimeError(f"the program does not ask ({outcome}):\n{reply['output']}")


def main():
    with Execd() as execd:
        # Python 3.13 draws its prompt in colours unless it is told not to.
        python = Repl(execd, "PYTHON_BASIC_REPL=1 exec python3 -q")
        for line in sys.argv[1:]:
            print(f"{line} -> {python.ask(line)}")


if __name__ == "__main__":
    main()
