from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import PICTURE
from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types
from llmsandbox import Error
from llmsandbox.integrations.google_adk import SandboxCodeExecutor
from scripted import ModelServer


async def test_agent(serve: Callable[..., ModelServer]) -> None:
    server = serve("```python\nx = 6\n```", f"```python\n{PICTURE}print(x * 7)\n```", "```python\n1 / 0\n```", "The answer is 42.")
    executor = SandboxCodeExecutor()
    agent = LlmAgent(
        name="analyst", model=LiteLlm("openai/scripted", api_base=server.url, api_key="scripted"), code_executor=executor, instruction="Write code."
    )
    runner = InMemoryRunner(agent=agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="anna")
    message = types.Content(role="user", parts=[types.Part(text="What is six times seven?")])
    parts = [
        part
        async for event in runner.run_async(user_id="anna", session_id=session.id, new_message=message)
        for part in (event.content.parts if event.content and event.content.parts else [])
    ]
    executor.close()
    results = [part.code_execution_result for part in parts if part.code_execution_result]
    assert "42" in str(results[1].output)
    assert results[2].outcome == types.Outcome.OUTCOME_FAILED
    assert parts[-1].text == "The answer is 42."


def test_data_files_are_refused() -> None:
    with pytest.raises(Error, match="optimize_data_file"):
        SandboxCodeExecutor(optimize_data_file=True)
