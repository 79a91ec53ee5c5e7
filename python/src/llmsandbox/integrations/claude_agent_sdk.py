"""The Claude Agent SDK.

    options = ClaudeAgentOptions(tools=[], mcp_servers={"sandbox": mcp_server(code)}, allowed_tools=["mcp__sandbox__run_python"])
"""

from __future__ import annotations

from typing import Any

from claude_agent_sdk import create_sdk_mcp_server, tool
from claude_agent_sdk.types import McpSdkServerConfig

from llmsandbox._async.tool import AsyncCodeTool
from llmsandbox.integrations._images import encoded


def mcp_server(code: AsyncCodeTool, *, conversation: str = "") -> McpSdkServerConfig:
    """Return a server with the tool, which runs in this program. Its calls have the sandbox of a conversation."""

    @tool(code.name, code.description, code.parameters)
    async def run(arguments: dict[str, Any]) -> dict[str, Any]:
        output = await code.call(arguments, conversation=conversation)
        content: list[dict[str, str]] = [{"type": "text", "text": output.text}]
        content += [{"type": "image", "data": encoded(image), "mimeType": image.mime} for image in output.images]
        return {"content": content, "is_error": output.is_error}

    return create_sdk_mcp_server("sandbox", tools=[run])
