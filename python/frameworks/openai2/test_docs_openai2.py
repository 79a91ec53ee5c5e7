from __future__ import annotations

from collections.abc import Callable

import pytest
from docs import SCRIPT, check, run_page
from google.adk.agents import LlmAgent
from llmsandbox.integrations.google_adk import SandboxCodeExecutor
from scripted import Call, ModelServer


@pytest.mark.parametrize("page", ["llama-index", "strands"])
def test_page(page: str, serve: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    check(page, serve(*SCRIPT), monkeypatch, capsys)


def test_autogen(serve: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    check("autogen", serve(Call("CodeExecutor", {"code": "print(6 * 7)"}), "The answer is 42."), monkeypatch, capsys)


def test_google_adk() -> None:
    """The agent's model is one that only Google serves, so it is not asked."""
    agent = run_page("google-adk")["root_agent"]
    assert isinstance(agent, LlmAgent) and isinstance(agent.code_executor, SandboxCodeExecutor)
    agent.code_executor.close()
