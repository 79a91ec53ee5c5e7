"""Pydantic AI.

    agent = Agent(model, tools=[code_tool(llmsandbox.AsyncCodeTool())])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai import BinaryContent, RunContext, Tool, ToolReturn

from llmsandbox._async.tool import AsyncCodeTool


def code_tool(code: AsyncCodeTool, *, conversation: Callable[[RunContext[Any]], str] | None = None) -> Tool[Any]:
    """Return the tool. `conversation` tells whose sandbox a call has, by its context; without it, all calls have one.

    Code that fails is a return value which says so. It is no ModelRetry, since code may fail more often than an agent retries.
    """

    async def run(context: RunContext[Any], **arguments: object) -> ToolReturn:
        output = await code.call(arguments, conversation="" if conversation is None else conversation(context))
        images = [BinaryContent(image.data, media_type=image.mime) for image in output.images]
        return ToolReturn(output.text, content=images or None, metadata=output)

    return Tool.from_schema(run, code.name, code.description, code.parameters, takes_ctx=True)
