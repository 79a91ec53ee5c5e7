from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.code_execution import PythonCodeExecutionTool
from llmsandbox.integrations.autogen import SandboxCodeExecutor
from scripted import Call, ModelServer


async def test_blocks() -> None:
    async with SandboxCodeExecutor() as executor:

        async def execute(*blocks: tuple[str, str]) -> tuple[int, str]:
            result = await executor.execute_code_blocks([CodeBlock(code, language) for language, code in blocks], CancellationToken())
            return result.exit_code, result.output

        assert await execute(("python", "x = 6"), ("sh", "echo begun > file; cat file")) == (0, "The code has printed nothing.\nbegun")
        assert await execute(("python", "print(x * 7, open('file').read())")) == (0, "42 begun")
        code, output = await execute(("python", "1 / 0"), ("python", "print('not run')"))
        assert code == 1 and "ZeroDivisionError" in output and "not run" not in output
        with pytest.raises(ValueError, match="ruby"):
            await execute(("ruby", "puts 1"))
        await executor.restart()
        assert (await execute(("python", "print('x' in globals())")))[1] == "False"


async def test_cancelled() -> None:
    async with SandboxCodeExecutor(timeout=None) as executor:
        token = CancellationToken()
        running = asyncio.ensure_future(executor.execute_code_blocks([CodeBlock("import time; time.sleep(600)", "python")], token))
        await executor.execute_code_blocks([CodeBlock("true", "bash")], CancellationToken())
        token.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_agent(serve: Callable[..., ModelServer]) -> None:
    server = serve(Call("CodeExecutor", {"code": "print(6 * 7)"}), "The answer is 42.")
    client = OpenAIChatCompletionClient(
        model="scripted",
        base_url=server.url,
        api_key="scripted",
        model_info={"vision": True, "function_calling": True, "json_output": False, "family": "unknown", "structured_output": False},
    )
    async with SandboxCodeExecutor() as executor:
        agent = AssistantAgent("analyst", client, tools=[PythonCodeExecutionTool(executor)], reflect_on_tool_use=True)
        result = await agent.run(task="What is six times seven?")
    assert result.messages[-1].to_text() == "The answer is 42."
    assert "42" in str(server.requests[-1]["messages"][-1])
    await client.close()
