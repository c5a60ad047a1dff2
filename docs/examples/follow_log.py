"""Copies a session's output into a file while the session runs, and survives every cut.

    python3 follow_log.py SOCKET SESSION COPY

The size of COPY is the offset to read on from. So the connection may break, and this program may
be killed and started again: no byte is missing and none comes twice. If execd itself has gone, the
rest comes from the log file. Exits 0 when COPY has all output of a session that has ended.
"""

import base64
import os
import subprocess
import sys
import time

from execd_client import Execd, ExecdGone


def follow(execd, session, copy):
    """Copies until the session's end. Yields the path of the log, once it is known."""
    while True:
        # `from` is a word of Python, so the params are a dict here.
        where = {"session_id": session, "from": copy.tell(), "view": "b64"}
        page = execd.call("read_output", yield_time_ms=30000, max_bytes=1 << 20, **where)
        if "gap" in page:
            raise SystemExit(f"bytes {page['gap']} of the output are gone")
        copy.write(base64.b64decode(page["data_b64"]))
        copy.flush()
        yield page.get("log_path")
        if page["eof"]:
            return


def read_rest(log_path, copy):
    """What the log has beyond our copy. `execd log` reads a log without its execd."""
    time.sleep(2)  # the helper that writes the log finishes within this time
    command = ["execd", "log", log_path, "--raw", "--from", str(copy.tell())]
    subprocess.run(command, stdout=copy, check=True)


def main():
    socket_path, session, copy_path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    log_path = None
    with open(copy_path, "ab") as copy:
        copy.seek(0, os.SEEK_END)
        while True:
            try:
                with Execd(socket_path=socket_path) as execd:
                    for path in follow(execd, session, copy):
                        log_path = path or log_path
                return 0
            except ExecdGone:
                print(f"cut at byte {copy.tell()}, going on", file=sys.stderr)
                time.sleep(0.2)
            except OSError as error:
                print(f"no execd at {socket_path}: {error.strerror}", file=sys.stderr)
                if log_path is not None:
                    read_rest(log_path, copy)
                return 1


if __name__ == "__main__":
    sys.exit(main())
