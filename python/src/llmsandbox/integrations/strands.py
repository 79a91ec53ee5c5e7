"""Strands Agents.

    agent = Agent(model, tools=[code_tool(llmsandbox.AsyncCodeTool())])
"""

from __future__ import annotations

from typing import Any, Literal, cast

from strands.tools.tools import PythonAgentTool
from strands.types.tools import ToolResult, ToolResultContent, ToolUse

from llmsandbox._async.tool import AsyncCodeTool


def code_tool(code: AsyncCodeTool, *, conversation: str = "") -> PythonAgentTool:
    """Return the tool of one agent, whose calls have the sandbox of a conversation."""

    async def run(use: ToolUse, **_: Any) -> ToolResult:
        output = await code.call(use["input"], conversation=conversation)
        content: list[ToolResultContent] = [{"text": output.text}]
        for image in output.images:
            kind = cast(Literal["png", "jpeg", "gif", "webp"], image.mime.removeprefix("image/"))
            content.append({"image": {"format": kind, "source": {"bytes": image.data}}})
        return {"toolUseId": use["toolUseId"], "status": "error" if output.is_error else "success", "content": content}

    specification: Any = {"name": code.name, "description": code.description, "inputSchema": {"json": code.parameters}}
    return PythonAgentTool(code.name, specification, run)
