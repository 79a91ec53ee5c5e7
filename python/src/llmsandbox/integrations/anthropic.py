"""Anthropic's Messages.

    code = llmsandbox.CodeTool()
    message = client.messages.create(model=model, max_tokens=4096, messages=messages, tools=[tool(code)])
    results = [tool_result(use.id, code.call(use.input)) for use in message.content if use.type == "tool_use"]
    messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
"""

from __future__ import annotations

from typing import Any

from llmsandbox._async.tool import AsyncCodeTool
from llmsandbox._sync.tool import CodeTool
from llmsandbox._tool import ToolOutput
from llmsandbox.integrations._images import encoded


def tool(code: CodeTool | AsyncCodeTool) -> Any:
    """Return the tool for `tools` of a message."""
    return {"name": code.name, "description": code.description, "input_schema": code.parameters}


def tool_result(tool_use_id: str, output: ToolOutput) -> Any:
    """Return the content block that answers a use of the tool."""
    content: list[dict[str, object]] = [{"type": "text", "text": output.text}]
    for image in output.images:
        content.append({"type": "image", "source": {"type": "base64", "media_type": image.mime, "data": encoded(image)}})
    return {"type": "tool_result", "tool_use_id": tool_use_id, "content": content, "is_error": output.is_error}
