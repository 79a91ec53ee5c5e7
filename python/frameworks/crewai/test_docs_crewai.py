from __future__ import annotations

from collections.abc import Callable

import pytest
from docs import SCRIPT, check
from scripted import ModelServer


@pytest.mark.parametrize("page", ["crewai"])
def test_page(page: str, serve: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    check(page, serve(*SCRIPT), monkeypatch, capsys)
