"""Runs commands, a few at a time, each with a deadline. Exits 1 if any of them fails.

    python3 parallel_tests.py --jobs 4 --deadline 60 'npm test' 'cargo test' 'make lint'
"""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from execd_client import Execd


def run(execd, command, deadline_s):
    """Gives a word for the outcome, the seconds that it took, and the output."""
    began = time.monotonic()
    # A test has nobody to ask: what reads stdin reads its end at once.
    start = execd.call("exec_command", cmd=command, stdin="null", yield_time_ms=250)
    end, output = start, start["output"]
    if "session_id" in start:
        session, left_s = start["session_id"], began + deadline_s - time.monotonic()
        wait = execd.call("wait_for", session_ids=[session], timeout_ms=max(0, int(left_s * 1000)))
        end = wait["sessions"][0]
        if end["outcome"] == "pending":
            end = execd.call("kill_session", session_id=session)
            return "TIMEOUT", time.monotonic() - began, output + end.get("output", "")
        output += end["output"]
    word = "ok" if end.get("exit_code") == 0 else "FAILED"
    return word, time.monotonic() - began, output


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--deadline", type=float, default=60, help="seconds for each command")
    parser.add_argument("commands", nargs="+", metavar="COMMAND")
    args = parser.parse_args()
    failures = 0
    with Execd() as execd, ThreadPoolExecutor(args.jobs) as pool:
        outcomes = pool.map(lambda command: run(execd, command, args.deadline), args.commands)
        for command, (word, seconds, output) in zip(args.commands, outcomes):
            print(f"{word:8}{seconds:7.1f} s  {command}", flush=True)
            if word != "ok":
                failures += 1
                print("".join(f"    {line}\n" for line in output.splitlines()[-20:]), end="")
    print(f"{len(args.commands) - failures} of {len(args.commands)} passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
