"""The command is that of LLMSANDBOX_TEST_COMMANDS, or of bin/test, which `make commands` builds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

COMMANDS = Path(os.environ.get("LLMSANDBOX_TEST_COMMANDS") or Path(__file__).parents[3] / "bin" / "test")
os.environ["PATH"] = f"{COMMANDS}{os.pathsep}{os.environ['PATH']}"
for name in ("LLMSANDBOX_URL", "LLMSANDBOX_API_KEY", "DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST", "KUBECONFIG"):
    os.environ.pop(name, None)


@pytest.fixture
def own_backends(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Backends that a test registers are forgotten after it."""
    from llm_sandbox import backends

    monkeypatch.setattr(backends, "_backends", dict(backends._backends))
    yield
