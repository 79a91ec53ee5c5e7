from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import pytest
from conftest import SCRIPT
from llmsandbox import CodeTool
from llmsandbox.integrations.openai import chat_messages, chat_tool, responses_output, responses_tool
from scripted import Call, ModelServer


@pytest.mark.parametrize("stream", [False, True])
def test_responses(serve: Callable[..., ModelServer], code: CodeTool, stream: bool) -> None:
    server = serve(*SCRIPT)
    messages: list[Any] = [{"role": "user", "content": "What is six times seven?"}]
    with openai.OpenAI(base_url=server.url) as client:
        while True:
            if stream:
                events = client.responses.create(model="scripted", input=messages, tools=[responses_tool(code)], stream=True)
                (response,) = [event.response for event in events if event.type == "response.completed"]
            else:
                response = client.responses.create(model="scripted", input=messages, tools=[responses_tool(code)])
            messages += response.output
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                break
            messages += [responses_output(call.call_id, code.call(call.arguments)) for call in calls]
    assert response.output_text == "The answer is 42."
    assert server.requests[0]["tools"][0]["parameters"]["required"] == ["code"]
    outputs = [item["output"] for item in server.requests[-1]["input"] if item.get("type") == "function_call_output"]
    assert [len(output) for output in outputs] == [1, 2, 1]
    assert outputs[1][0]["text"].startswith("42\n")
    assert outputs[1][1]["image_url"].startswith("data:image/png;base64,iVBOR")
    assert "ZeroDivisionError" in outputs[2][0]["text"]


def test_chat(serve: Callable[..., ModelServer], code: CodeTool) -> None:
    server = serve(*SCRIPT[:2], [Call("run_python", {"code": "x + 1"}), Call("run_python", {})], "Done.")
    messages: list[Any] = [{"role": "user", "content": "What is six times seven?"}]
    with openai.OpenAI(base_url=server.url) as client:
        while True:
            message = client.chat.completions.create(model="scripted", messages=messages, tools=[chat_tool(code)]).choices[0].message
            if not message.tool_calls:
                break
            messages.append(message)
            for call in message.tool_calls:
                assert call.type == "function"
                messages += chat_messages(call.id, code.call(call.function.arguments))
    assert message.content == "Done."
    seen = server.requests[-1]["messages"]
    assert [m["role"] for m in seen] == ["user", "assistant", "tool", "assistant", "tool", "user", "assistant", "tool", "tool"]
    assert seen[5]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert seen[7]["content"] == "7"
    assert "code" in seen[8]["content"]
