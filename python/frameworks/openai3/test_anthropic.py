from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import pytest
from conftest import SCRIPT
from llmsandbox import CodeTool
from llmsandbox.integrations.anthropic import tool, tool_result
from scripted import ModelServer


@pytest.mark.parametrize("stream", [False, True])
def test_messages(serve: Callable[..., ModelServer], code: CodeTool, stream: bool) -> None:
    server = serve(*SCRIPT)
    messages: list[Any] = [{"role": "user", "content": "What is six times seven?"}]
    with anthropic.Anthropic(base_url=server.root) as client:
        while True:
            if stream:
                with client.messages.stream(model="scripted", max_tokens=100, messages=messages, tools=[tool(code)]) as events:
                    message: Any = events.get_final_message()
            else:
                message = client.messages.create(model="scripted", max_tokens=100, messages=messages, tools=[tool(code)])
            uses = [block for block in message.content if block.type == "tool_use"]
            if not uses:
                break
            results = [tool_result(use.id, code.call(use.input)) for use in uses]
            messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    assert message.content[0].text == "The answer is 42."
    blocks = [m["content"][0] for m in server.requests[-1]["messages"][1:] if m["role"] == "user"]
    assert [block["is_error"] for block in blocks] == [False, False, True]
    text, image = blocks[1]["content"]
    assert text["text"].startswith("42\n")
    assert image["source"]["media_type"] == "image/png"
    assert "ZeroDivisionError" in blocks[2]["content"][0]["text"]
