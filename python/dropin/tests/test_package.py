"""The package as a whole."""

from __future__ import annotations

import llm_sandbox


def test_names() -> None:
    names: dict[str, object] = {}
    exec("from llm_sandbox import *", names)
    assert set(llm_sandbox.__all__) <= set(names)
