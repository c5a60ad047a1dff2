"""What both clients in Python do with `execd mcp`."""

import asyncio
import os
import re
import time
from typing import Any


def text_of(result: Any) -> str:
    """The text of a result that is no error."""
    is_error = getattr(result, "isError", None) or getattr(result, "is_error", None)
    assert not is_error, result
    assert len(result.content) == 1, result
    return result.content[0].text


async def scenario(client: Any, error: type[Exception]) -> None:
    async def ask(name: str, given: dict[str, Any], **more: Any) -> str:
        return text_of(await client.call_tool(name, given, **more))

    names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == ["exec_command", "write_stdin", "kill_session", "list_sessions", "wait_for"]
    said = await ask("exec_command", {"cmd": "echo hi"})
    assert re.fullmatch(r"\[exited\]\nexit_code: 0\n--- output (\w+)\nhi\n--- end \1", said), said

    await cancels(client, ask)

    started = await ask(
        "exec_command",
        {"cmd": "python3 -q -i", "tty": True, "until": {"text": ">>>"}, "yield_time_ms": 45_000},
    )
    repl = int(re.search(r"session_id: (\d+)", started)[1])
    said = await ask(
        "write_stdin",
        {"session_id": repl, "chars": "6*7\\r", "until": {"text": "42"}, "yield_time_ms": 45_000},
    )
    assert "42" in said, said

    server = await ask(
        "exec_command",
        {
            "cmd": "exec python3 -u -m http.server 0 --bind 127.0.0.1",
            "until": {"port": "any"},
            "yield_time_ms": 45_000,
        },
    )
    assert "wait: matched" in server, server
    session = int(re.search(r"session_id: (\d+)", server)[1])
    uri = f"execd://session/{session}/log"
    assert uri in [str(one.uri) for one in (await client.list_resources()).resources]
    contents = (await client.read_resource(uri)).contents
    assert "Serving HTTP" in contents[0].text, contents

    gated = await ask(
        "exec_command",
        {"cmd": "until [ -e go ]; do sleep 0.05; done; exit 5", "yield_time_ms": 250},
    )
    gated_id = re.search(r"session_id: (\d+)", gated)[1]
    with open(os.path.join(os.environ["WORK"], "go"), "w"):
        pass
    told, deadline = "", time.monotonic() + 60
    while f"event: session {gated_id} " not in told:
        assert time.monotonic() < deadline, told
        told = await ask("exec_command", {"cmd": "true"})
    assert "exited 5" in told, told

    try:
        await client.call_tool("no_such_tool", {})
        raise AssertionError("an unknown tool is an error")
    except error as refused:
        assert "Unknown tool" in str(refused), refused


async def cancels(client: Any, ask: Any) -> None:
    """Progress, then a cancellation by whoever waits."""
    heard = asyncio.Event()

    async def progress(_done: float, _total: float | None, message: str | None) -> None:
        assert message == "begun", message
        heard.set()

    given = {
        "cmd": "echo begun; exec sleep 1000",
        "yield_time_ms": 45_000,
        "until": {"text": "never"},
    }
    waiting = asyncio.create_task(
        client.call_tool("exec_command", given, progress_callback=progress)
    )
    await asyncio.wait_for(heard.wait(), 60)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    listed, deadline = "", time.monotonic() + 60
    while "1 live" not in listed:
        assert time.monotonic() < deadline, listed
        listed = await ask("list_sessions", {})
