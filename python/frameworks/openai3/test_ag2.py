from __future__ import annotations

from collections.abc import Callable

from ag2 import Agent
from ag2.config import OpenAIConfig
from ag2.tools import SandboxCodeTool
from llmsandbox.integrations.ag2 import SandboxEnvironment
from scripted import Call, ModelServer


async def test_agent(serve: Callable[..., ModelServer]) -> None:
    server = serve(
        Call("run_code", {"code": "x = 6", "language": "python"}),
        Call("run_code", {"code": "echo $((6 + 1)) > n", "language": "bash"}),
        Call("run_code", {"code": "print(x * int(open('n').read()))", "language": "python"}),
        Call("run_code", {"code": "1 / 0", "language": "python"}),
        Call("run_code", {"code": "1", "language": "javascript"}),
        "The answer is 42.",
    )
    async with SandboxEnvironment() as environment:
        config = OpenAIConfig("scripted", base_url=server.url, api_key="scripted")
        reply = await Agent("analyst", config=config, tools=[SandboxCodeTool(environment)]).ask("What is six times seven?")
    assert reply.body == "The answer is 42."
    said = [str(m["content"]) for m in server.requests[-1]["messages"] if m["role"] == "tool"]
    assert said[2].startswith("42")
    assert "ZeroDivisionError" in said[3] and "[exit code: 1]" in said[3]
    assert "javascript" in said[4]
