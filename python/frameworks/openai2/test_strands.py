from __future__ import annotations

from collections.abc import Callable

from conftest import SCRIPT
from llmsandbox import AsyncCodeTool
from llmsandbox.integrations.strands import code_tool
from scripted import ModelServer
from strands import Agent
from strands.models.openai import OpenAIModel


async def test_agent(serve: Callable[..., ModelServer], code_async: AsyncCodeTool) -> None:
    server = serve(*SCRIPT)
    model = OpenAIModel(client_args={"base_url": server.url, "api_key": "scripted"}, model_id="scripted")
    agent = Agent(model, tools=[code_tool(code_async)], callback_handler=None)
    result = await agent.invoke_async("What is six times seven?")
    assert str(result).strip() == "The answer is 42."
    results = [block["toolResult"] for message in agent.messages for block in message["content"] if "toolResult" in block]
    assert [r["status"] for r in results] == ["success", "success", "error"]
    assert "image" in results[1]["content"][1]
    assert "ZeroDivisionError" in str(server.requests[-1]["messages"])
