from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from docs import SCRIPT, check
from scripted import Call, ModelServer


@pytest.mark.parametrize("page", ["openai", "anthropic", "openai-agents", "langchain", "pydantic-ai"])
def test_page(page: str, serve: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    check(page, serve(*SCRIPT), monkeypatch, capsys)


def test_ag2(serve: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    check("ag2", serve(Call("run_code", {"code": "print(6 * 7)", "language": "python"}), "The answer is 42."), monkeypatch, capsys)


def test_claude_agent_sdk(
    serve: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
    server = serve(Call("mcp__sandbox__run_python", {"code": "print(6 * 7)"}), "The answer is 42.")
    check("claude-agent-sdk", server, monkeypatch, capsys)


def test_deep_agents(serve: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    check("deepagents", serve(Call("execute", {"command": "echo $((6 * 7))"}), "The answer is 42."), monkeypatch, capsys)


def test_smolagents(serve: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    server = serve("<code>\nx = 6 * 7\nprint(x)\n</code>", "<code>\nfinal_answer(f'The answer is {x}.')\n</code>")
    check("smolagents", server, monkeypatch, capsys)
