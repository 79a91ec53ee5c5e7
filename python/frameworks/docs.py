"""Runs the first lines of pages of the documentation as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripted import Call, ModelServer, Turn

PAGES = Path(__file__).parents[2] / "docs" / "frameworks"
SCRIPT: list[Turn] = [Call("run_python", {"code": "print(6 * 7)"}), "The answer is 42."]


def run_page(page: str) -> dict[str, object]:
    """Run a page's first block, and return what it has defined."""
    block = re.search(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert block is not None
    names: dict[str, object] = {"__name__": page}
    exec(compile(block[1], f"{page}.md", "exec"), names)
    return names


def check(page: str, server: ModelServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a page whose model is a scripted one. It prints the model's last words."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_BASE", server.url)  # which LlamaIndex looks at
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root)
    run_page(page)
    assert "The answer is 42." in capsys.readouterr().out
    assert "42" in str(server.requests[-1])
