"""PyPI mcp 2.x: `mcp2.py legacy|2026-07-28`."""

import asyncio
import os
import sys

from mcp import Client, MCPError, StdioServerParameters

from scenario import scenario

SERVER = StdioServerParameters(
    command=os.environ["EXECD"], args=["mcp"], env=dict(os.environ), cwd=os.environ["WORK"]
)


async def main() -> None:
    async with Client(SERVER, mode=sys.argv[1]) as client:
        await scenario(client, MCPError)
        if sys.argv[1] == "legacy":
            return
        await client.call_tool("exec_command", {"cmd": "exec cat"})
        listed = await client.list_resources(cache_mode="bypass")
        uri = listed.resources[0].uri
        async with client.listen(resource_subscriptions=[str(uri)]) as stream:
            assert [str(one) for one in stream.honored.resource_subscriptions] == [str(uri)]


asyncio.run(main())
