from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query
from conftest import PICTURE
from llmsandbox import AsyncCodeTool
from llmsandbox.integrations.claude_agent_sdk import mcp_server
from scripted import Call, ModelServer


async def test_agent(serve: Callable[..., ModelServer], code_async: AsyncCodeTool, tmp_path: Path) -> None:
    name = "mcp__sandbox__run_python"
    server = serve(Call(name, {"code": "x = 6"}), Call(name, {"code": PICTURE + "print(x * 7)"}), Call(name, {"code": "1 / 0"}), "The answer is 42.")
    options = ClaudeAgentOptions(
        tools=[],
        mcp_servers={"sandbox": mcp_server(code_async)},
        allowed_tools=[name],
        setting_sources=[],
        cwd=tmp_path,
        env={
            "ANTHROPIC_BASE_URL": server.root,
            "HOME": str(tmp_path),
            "PATH": os.environ["PATH"],
            "DISABLE_TELEMETRY": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    )
    messages = [message async for message in query(prompt="What is six times seven?", options=options)]
    last = messages[-1]
    assert isinstance(last, ResultMessage) and last.result == "The answer is 42."
    contents = [m["content"] for m in server.requests[-1]["messages"] if isinstance(m["content"], list)]
    results = [block for content in contents for block in content if block["type"] == "tool_result"]
    assert "42" in str(results[1]["content"]) and "image" in str(results[1]["content"])
    assert results[2]["is_error"] and "ZeroDivisionError" in str(results[2]["content"])
