"""The OpenAI Agents SDK.

    agent = Agent(name="analyst", tools=[function_tool(llmsandbox.AsyncCodeTool())])
"""

from __future__ import annotations

from collections.abc import Callable

from agents import FunctionTool, ToolOutputImage, ToolOutputText
from agents.tool_context import ToolContext

from llmsandbox._async.tool import AsyncCodeTool
from llmsandbox.integrations._images import data_url


def function_tool(code: AsyncCodeTool, *, conversation: Callable[[ToolContext[object]], str] | None = None) -> FunctionTool:
    """Return the tool. `conversation` tells whose sandbox a call has, by its context; without it, all calls have one."""

    async def invoke(context: ToolContext[object], arguments: str) -> list[ToolOutputText | ToolOutputImage]:
        output = await code.call(arguments, conversation="" if conversation is None else conversation(context))
        images = [ToolOutputImage(image_url=data_url(image)) for image in output.images]
        return [ToolOutputText(text=output.text), *images]

    return FunctionTool(code.name, code.description, code.parameters, invoke, strict_json_schema=False)
