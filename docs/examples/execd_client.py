"""A client of execd in one file: Python 3.8 or newer, the standard library, nothing else.

    with Execd() as execd:
        reply = execd.call("exec_command", cmd="make", yield_time_ms=30000)
        print(reply["output"], reply.get("exit_code"))

`Execd()` starts an execd of its own and ends it, with all sessions, at the end of the block.
`Execd(socket_path=PATH)` talks to one that runs already, and leaves it alone. Any number of
threads may call at once. Copy this file into your project and change it as you like.
"""

import itertools
import json
import socket
import subprocess
import threading
from concurrent.futures import Future

# No call of execd waits longer than 30 minutes unless its flags say so.
PATIENCE_S = 35 * 60


class ExecdError(Exception):
    """execd refused a request. `data` may have a stable word in `data["reason"]`."""

    def __init__(self, method, error):
        super().__init__(f"{method}: {error['message']}")
        self.code = error["code"]
        self.data = error.get("data", {})


class ExecdGone(Exception):
    """The connection ended before the reply came. The command may have been started."""


class Execd:
    def __init__(self, *flags, program="execd", socket_path=None, on_notification=None):
        """`on_notification(method, params)` runs on the thread that reads, so it must be short."""
        self._process = self._socket = None
        if socket_path is None:
            self._process = subprocess.Popen(
                [program, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            self._to, self._from = self._process.stdin, self._process.stdout
        else:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(socket_path)
            self._to, self._from = self._socket.makefile("wb"), self._socket.makefile("rb")
        self._on_notification = on_notification
        self._ids = itertools.count(1)
        self._write_lock = threading.Lock()
        self._lock = threading.Lock()  # of the two below
        self._waiting = {}  # id -> (method, Future)
        self._open = True
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def call(self, method, **params):
        """Sends a request and waits for its result. Raises ExecdError or ExecdGone."""
        return self.request(method, **params).result(PATIENCE_S)

    def request(self, method, **params):
        """Sends a request and returns at once. Replies may come in any order."""
        future = Future()
        with self._lock:
            if not self._open:
                raise ExecdGone(f"{method}: the connection has ended")
            request_id = next(self._ids)
            self._waiting[request_id] = (method, future)
        line = json.dumps({"id": request_id, "method": method, "params": params})
        try:
            with self._write_lock:
                self._to.write(line.encode() + b"\n")
                self._to.flush()
        except (OSError, ValueError):
            pass  # the reader sees the end too, and settles every future
        return future

    def close(self):
        """Ends the connection. An execd of our own ends every session; gives its exit status."""
        with self._lock:
            self._open = False
        try:
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
                self._socket.close()
            self._to.close()
        except OSError:
            pass  # execd has gone already
        if self._process is None:
            return 0
        try:
            return self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self):
        try:
            for line in self._from:
                message = json.loads(line)
                if "method" in message:
                    if self._on_notification is not None:
                        self._on_notification(message["method"], message["params"])
                else:
                    self._settle(message)
        except (OSError, ValueError):
            pass  # the connection broke, perhaps within a line
        with self._lock:
            self._open = False
            left, self._waiting = self._waiting, {}
        for method, future in left.values():
            future.set_exception(ExecdGone(f"{method}: the connection ended before the reply"))

    def _settle(self, message):
        with self._lock:
            method, future = self._waiting.pop(message["id"], (None, None))
        if future is None:
            return
        if "error" in message:
            future.set_exception(ExecdError(method, message["error"]))
        else:
            future.set_result(message["result"])
