"""What docs/from-llm-sandbox.md shows works as it is typed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "from-llm-sandbox.md"


def test_first_lines() -> None:
    first = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert first is not None
    done = subprocess.run([sys.executable, "-W", "error", "-c", first[1]], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("0 42\n\n1 png\n", "", 0)
