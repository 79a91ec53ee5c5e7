from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conftest import SCRIPT
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from llmsandbox import AsyncCodeTool, CodeTool, ToolOutput
from llmsandbox.integrations.langchain import code_tool
from scripted import Call, ModelServer


def tool_messages(state: dict[str, Any]) -> list[ToolMessage]:
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


def test_agent(serve: Callable[..., ModelServer], code: CodeTool) -> None:
    server = serve(*SCRIPT)
    model = ChatAnthropic(model_name="scripted", base_url=server.root, timeout=60, stop=None)
    state = create_agent(model, tools=[code_tool(code)]).invoke({"messages": [{"role": "user", "content": "What is six times seven?"}]})
    assert state["messages"][-1].text == "The answer is 42."
    _, picture, failed = tool_messages(state)
    assert isinstance(picture.artifact, ToolOutput)
    assert (picture.status, failed.status) == ("success", "error")
    blocks = server.requests[2]["messages"][-1]["content"][0]["content"]
    assert [block["type"] for block in blocks] == ["text", "image"]
    assert "ZeroDivisionError" in str(failed.content)


async def test_threads(serve: Callable[..., ModelServer], code_async: AsyncCodeTool) -> None:
    """Turns of one thread have its variables, and those of another one have not."""
    look = Call("run_python", {"code": "print('x' in globals())"})
    server = serve(Call("run_python", {"code": "x = 1"}), "Done.", look, "Done.", look, "Done.")
    model = ChatOpenAI(model="scripted", base_url=server.url)
    agent = create_agent(model, tools=[code_tool(code_async, images=False)], checkpointer=InMemorySaver())
    said: list[object] = []
    for thread in "1", "1", "2":
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        state = await agent.ainvoke({"messages": [{"role": "user", "content": "Go on."}]}, config)
        said.append(tool_messages(state)[-1].content)
    assert said == ["The code has printed nothing.", "True", "False"]


async def test_without_images(serve: Callable[..., ModelServer], code_async: AsyncCodeTool) -> None:
    server = serve(*SCRIPT)
    model = ChatOpenAI(model="scripted", base_url=server.url)
    agent = create_agent(model, tools=[code_tool(code_async, images=False)])
    state = await agent.ainvoke({"messages": [{"role": "user", "content": "What is six times seven?"}]})
    picture = tool_messages(state)[1]
    assert str(picture.content).startswith("42\n")
    assert len(picture.artifact.images) == 1
