from __future__ import annotations

from collections.abc import Callable

from conftest import SCRIPT
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.llms.openai import OpenAI
from llmsandbox import AsyncCodeTool
from llmsandbox.integrations.llama_index import CodeFunctionTool
from scripted import ModelServer


async def test_agent(serve: Callable[..., ModelServer], code_async: AsyncCodeTool) -> None:
    server = serve(*SCRIPT)
    llm = OpenAI(model="gpt-4o", api_base=server.url, api_key="scripted")
    handler = FunctionAgent(tools=[CodeFunctionTool(code_async)], llm=llm).run("What is six times seven?")
    outputs = [event.tool_output async for event in handler.stream_events() if isinstance(event, ToolCallResult)]
    assert str(await handler) == "The answer is 42."
    assert [output.is_error for output in outputs] == [False, False, True]
    assert [block.block_type for block in outputs[1].blocks] == ["text", "image"]
    assert "ZeroDivisionError" in str(server.requests[-1]["messages"][-1])
