"""OpenAI's Responses and Chat Completions, as their servers and all that speak like them have it.

    code = llmsandbox.CodeTool()
    response = client.responses.create(model=model, input=messages, tools=[responses_tool(code)])
    messages += response.output
    messages += [responses_output(call.call_id, code.call(call.arguments)) for call in response.output if call.type == "function_call"]
"""

from __future__ import annotations

from typing import Any

from llmsandbox._async.tool import AsyncCodeTool
from llmsandbox._sync.tool import CodeTool
from llmsandbox._tool import ToolOutput
from llmsandbox.integrations._images import data_url


def responses_tool(code: CodeTool | AsyncCodeTool) -> Any:
    """Return the tool for `tools` of a response."""
    return {"type": "function", **_function(code)}


def chat_tool(code: CodeTool | AsyncCodeTool) -> Any:
    """Return the tool for `tools` of a chat completion."""
    return {"type": "function", "function": _function(code)}


def responses_output(call_id: str, output: ToolOutput) -> Any:
    """Return the item for the input of the next response."""
    content: list[dict[str, str]] = [{"type": "input_text", "text": output.text}]
    content += [{"type": "input_image", "image_url": data_url(image), "detail": "auto"} for image in output.images]
    return {"type": "function_call_output", "call_id": call_id, "output": content}


def chat_messages(call_id: str, output: ToolOutput) -> list[Any]:
    """Return the messages for the next chat completion.

    Messages of tools have no images there, so these follow in a message of the user. When a model has called several tools at once,
    put the first message of each before all others.
    """
    messages: list[dict[str, object]] = [{"role": "tool", "tool_call_id": call_id, "content": output.text}]
    if output.images:
        images = [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in output.images]
        text = {"type": "text", "text": "The images that the code has made:"}
        messages.append({"role": "user", "content": [text, *images]})
    return list[Any](messages)


def _function(code: CodeTool | AsyncCodeTool) -> dict[str, object]:
    return {"name": code.name, "description": code.description, "parameters": code.parameters, "strict": False}
