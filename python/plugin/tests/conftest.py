"""The command is that of LLMSANDBOX_TEST_COMMANDS, or of bin/test, which `make commands` builds."""

from __future__ import annotations

import os
from pathlib import Path

COMMANDS = Path(os.environ.get("LLMSANDBOX_TEST_COMMANDS") or Path(__file__).parents[3] / "bin" / "test")
os.environ["PATH"] = f"{COMMANDS}{os.pathsep}{os.environ['PATH']}"
for name in ("LLMSANDBOX_URL", "LLMSANDBOX_API_KEY"):
    os.environ.pop(name, None)
