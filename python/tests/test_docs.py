"""What docs/python.md shows works as it is typed."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_first_lines(program: Callable[..., CompletedProcess[str]]) -> None:
    done = program(EXAMPLES[0])
    assert (done.stdout, done.stderr) == ("42\n\nok NAME,AGE\nANNA,41\n\n\n21\n", "")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.timeout is new in Python 3.11")
def test_page(program: Callable[..., CompletedProcess[str]]) -> None:
    done = program("\n".join(EXAMPLES))
    assert (done.stderr, done.returncode) == ("", 0)
    lines = done.stdout.splitlines()
    assert lines[lines.index("21") + 1].startswith("False timeout ")
    assert {"hello", "again", "2 42", "Hello Anna", "3 True", "[8000] 200", '"pooled"'} <= set(lines)
    assert {"['0\\n', '1\\n', '2\\n', '3\\n']", "done"} <= set(lines)
