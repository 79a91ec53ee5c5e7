from __future__ import annotations

from collections.abc import Callable

from agents import Agent, OpenAIResponsesModel, Runner
from agents.tool_context import ToolContext
from conftest import SCRIPT
from llmsandbox import AsyncCodeTool
from llmsandbox.integrations.openai_agents import function_tool
from openai import AsyncOpenAI
from scripted import Call, ModelServer


async def test_agent(serve: Callable[..., ModelServer], code_async: AsyncCodeTool) -> None:
    server = serve(*SCRIPT)
    async with AsyncOpenAI(base_url=server.url) as client:
        agent = Agent(name="analyst", model=OpenAIResponsesModel("scripted", client), tools=[function_tool(code_async)])
        result = await Runner.run(agent, "What is six times seven?")
    assert result.final_output == "The answer is 42."
    outputs = [item["output"] for item in server.requests[-1]["input"] if item.get("type") == "function_call_output"]
    assert outputs[1][0]["text"].startswith("42\n")
    assert outputs[1][1]["image_url"].startswith("data:image/png;base64,")
    assert "ZeroDivisionError" in outputs[2][0]["text"]


async def test_conversations(serve: Callable[..., ModelServer], code_async: AsyncCodeTool) -> None:
    def user(context: ToolContext[object]) -> str:
        return str(context.context)

    server = serve(Call("run_python", {"code": "x = 1"}), "Done.", Call("run_python", {"code": "print('x' in globals())"}), "Done.")
    async with AsyncOpenAI(base_url=server.url) as client:
        agent = Agent[object](name="analyst", model=OpenAIResponsesModel("scripted", client), tools=[function_tool(code_async, conversation=user)])
        await Runner.run(agent, "Begin.", context="anna")
        await Runner.run(agent, "Begin.", context="ben")
    assert server.requests[-1]["input"][-1]["output"][0]["text"] == "False"


async def test_stream(serve: Callable[..., ModelServer], code_async: AsyncCodeTool) -> None:
    server = serve(*SCRIPT[:2], "Done.")
    async with AsyncOpenAI(base_url=server.url) as client:
        agent = Agent(name="analyst", model=OpenAIResponsesModel("scripted", client), tools=[function_tool(code_async)])
        result = Runner.run_streamed(agent, "What is six times seven?")
        kinds = {event.type async for event in result.stream_events()}
    assert result.final_output == "Done."
    assert "run_item_stream_event" in kinds
