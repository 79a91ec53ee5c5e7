from __future__ import annotations

import os
from collections.abc import Callable

os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["OTEL_SDK_DISABLED"] = "true"

from conftest import SCRIPT
from crewai import LLM, Agent, Crew, CrewOutput, Task
from llmsandbox import CodeTool
from llmsandbox.integrations.crewai import code_tool
from scripted import ModelServer


def test_crew(serve: Callable[..., ModelServer], code: CodeTool) -> None:
    server = serve(*SCRIPT)
    llm = LLM(model="openai/gpt-4o", base_url=server.url, api_key="scripted")
    analyst = Agent(role="analyst", goal="find the answer", backstory="counts well", tools=[code_tool(code)], llm=llm)
    task = Task(description="What is six times seven?", expected_output="a number", agent=analyst)
    result = Crew(agents=[analyst], tasks=[task]).kickoff()
    assert isinstance(result, CrewOutput) and result.raw == "The answer is 42."
    said = [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "tool"]
    assert said[1].startswith("42\n")
    assert "ZeroDivisionError" in said[2]
