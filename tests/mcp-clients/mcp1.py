"""PyPI mcp 1.x."""

import asyncio
import os

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import McpError

from scenario import scenario

SERVER = StdioServerParameters(
    command=os.environ["EXECD"], args=["mcp"], env=dict(os.environ), cwd=os.environ["WORK"]
)


async def main() -> None:
    async with stdio_client(SERVER) as (read, write):
        async with ClientSession(read, write) as session:
            about = await session.initialize()
            assert about.serverInfo.name == "execd", about
            assert len(about.instructions) <= 600
            await session.send_ping()
            await scenario(session, McpError)


asyncio.run(main())
