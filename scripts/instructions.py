#!/usr/bin/env python3
"""Instructions of a request at 1 and at many sessions: does a turn cost more when others idle?

    scripts/instructions.py [--binary target/release/execd] [--sessions 1,256,2048] [EXECD FLAG...]

Runs the release binary (built first, unless one is named) under `valgrind --tool=callgrind`, opens
that many idle sessions (`exec sleep 1000`), and counts the instructions of a batch of requests:
callgrind is told by vgdb to write its counters out and to begin again before and after the batch.
A `ping` beside each dump makes sure that all of the batch is done. What is counted is execd's own
code; the kernel's part does not show (strace -T and a clock do), nor does the keeper's. Counts do not
depend on the machine's speed, and repeat within one per cent for a ping, within ten for a command:
how many turns its end takes is the kernel's choice.

Under valgrind children run in a copy of execd's memory (EXECD_UNDER_VALGRIND): what exec_command
costs here is a little more than without. Prints a markdown table; exits with 1 when a ping costs
over 5 % more with the most sessions than with the fewest. Needs valgrind and Python 3.8.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

# Requests of a batch, by method; more make the dump's own cost count less.
BATCHES = (("ping", {}, 1000), ("exec_command", {"cmd": "true"}, 60), ("server_info", {}, 60))
MOST_GROWTH = 1.05
# Sessions are opened this many at a time: each waits 250 ms for its first answer.
AT_ONCE = 256
PATIENCE_S = 30


class Execd:
    """An execd under callgrind, its counters in files of `work`."""

    def __init__(self, binary, work, flags):
        self.work = work
        self.prefix = f"--vgdb-prefix={work}/vgdb"
        command = ["valgrind", "-q", "--tool=callgrind", self.prefix]
        command.append(f"--callgrind-out-file={work}/out.%p")
        self.process = subprocess.Popen(
            command + [binary, "--max-sessions", "4096"] + flags,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=work, env=dict(os.environ, TMPDIR=work, EXECD_UNDER_VALGRIND="1"),
        )
        self.next_id = 0
        self.dumps = 0

    def send(self, method, params):
        self.next_id += 1
        line = json.dumps({"id": self.next_id, "method": method, "params": params}) + "\n"
        self.process.stdin.write(line.encode())
        self.process.stdin.flush()
        return self.next_id

    def replies(self, ids):
        """Reads until all of these are answered."""
        ids = set(ids)
        while ids:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("execd ended")
            reply = json.loads(line)
            if "error" in reply:
                raise SystemExit(f"refused: {reply}")
            if "method" not in reply:
                ids.discard(reply["id"])

    def request(self, method, params):
        self.replies([self.send(method, params)])

    def until_asleep(self):
        """Waits until no turn is left: the next request would be taken up in it else, or not."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with open(f"/proc/{self.process.pid}/stat") as stat:
                if stat.read().rsplit(") ", 1)[1].startswith("S"):
                    return
        raise SystemExit("execd never sleeps")

    def open(self, count):
        while count > 0:
            some = min(count, AT_ONCE)
            params = {"cmd": "exec sleep 1000", "yield_time_ms": 250}
            self.replies([self.send("exec_command", params) for _ in range(some)])
            count -= some

    def instructions(self):
        """Those since the last call."""
        self.request("ping", {})
        self.dumps += 1
        pid = self.process.pid
        ask = ["vgdb", self.prefix, f"--pid={pid}", "dump"]
        done = subprocess.run(ask, capture_output=True, text=True)
        path = f"{self.work}/out.{pid}.{self.dumps}"
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if os.path.exists(path):
                with open(path) as lines:
                    totals = [line for line in lines if line.startswith("totals:")]
                if totals:
                    return int(totals[0].split()[1])
            time.sleep(0.02)
        raise SystemExit(f"no dump {path}: {glob.glob(self.work + '/out*')} {done.stderr}")

    def end(self):
        # The end of so many sessions is not what is measured: the keeper's guard sees to it.
        self.process.kill()
        self.process.wait()


def measure(binary, sessions, flags):
    """Instructions of one request, by method."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        execd = Execd(binary, work, flags)
        try:
            execd.open(sessions)
            per_request = []
            for method, params, count in BATCHES:
                for _ in range(10):
                    execd.request(method, params)
                execd.instructions()
                for _ in range(count):
                    execd.request(method, params)
                    execd.until_asleep()
                per_request.append(execd.instructions() / count)
            return per_request
        finally:
            execd.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary")
    parser.add_argument("--sessions", default="1,256,2048")
    arguments, flags = parser.parse_known_args()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    binary = arguments.binary
    if binary is None:
        subprocess.run(["cargo", "build", "--release", "--locked"], cwd=root, check=True)
        target = os.environ.get("CARGO_TARGET_DIR", os.path.join(root, "target"))
        binary = os.path.join(root, target, "release", "execd")
    print("| sessions | " + " | ".join(method for method, _, _ in BATCHES) + " |")
    print("|---:|" + "---:|" * len(BATCHES))
    rows = []
    for sessions in map(int, arguments.sessions.split(",")):
        rows.append(measure(os.path.abspath(binary), sessions, flags))
        print(f"| {sessions} | " + " | ".join(f"{count:,.0f}" for count in rows[-1]) + " |")
        sys.stdout.flush()
    growth = rows[-1][0] / rows[0][0]
    print(f"\nA ping: {growth:.3f} times the first row's instructions in the last.")
    return 0 if growth <= MOST_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
