"""The backend nsjail."""

from __future__ import annotations

from typing import Any

from llm_sandbox.local.session import LocalProcessSession


class NsjailSession(LocalProcessSession):
    """A session on this machine. `nsjail_path` is accepted for compatibility: the sandbox does not need the program."""

    def __init__(self, *, nsjail_path: str = "nsjail", **kwargs: Any) -> None:
        super().__init__(**kwargs)
