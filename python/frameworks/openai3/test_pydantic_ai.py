from __future__ import annotations

from collections.abc import Callable

from conftest import SCRIPT
from llmsandbox import AsyncCodeTool
from llmsandbox.integrations.pydantic_ai import code_tool
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from scripted import Call, ModelServer


def model(server: ModelServer) -> OpenAIChatModel:
    return OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=server.url, api_key="scripted"))


async def test_agent(serve: Callable[..., ModelServer], code_async: AsyncCodeTool) -> None:
    server = serve(*SCRIPT)
    result = await Agent(model(server), tools=[code_tool(code_async)]).run("What is six times seven?")
    assert result.output == "The answer is 42."
    messages = server.requests[-1]["messages"]
    said = [m["content"] for m in messages if m["role"] == "tool"]
    assert said[1].startswith("42\n")
    assert "ZeroDivisionError" in said[2]
    assert "data:image/png;base64," in str([m for m in messages if m["role"] == "user"])


async def test_conversations(serve: Callable[..., ModelServer], code_async: AsyncCodeTool) -> None:
    def user(context: RunContext[str]) -> str:
        return context.deps

    server = serve(Call("run_python", {"code": "x = 1"}), "Done.", Call("run_python", {"code": "print('x' in globals())"}), "Done.")
    agent = Agent(model(server), deps_type=str, tools=[code_tool(code_async, conversation=user)])
    await agent.run("Begin.", deps="anna")
    await agent.run("Begin.", deps="ben")
    assert server.requests[-1]["messages"][-1]["content"] == "False"
