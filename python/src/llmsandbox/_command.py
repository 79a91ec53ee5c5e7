"""The console script `llmsandbox`: the command that is in this package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Become the command, with the arguments of this program."""
    directory = Path(__file__).parent / "_bin"
    if sys.platform == "win32":  # where a program cannot become another
        sys.exit(subprocess.call([directory / "llmsandbox.exe", *sys.argv[1:]]))
    os.execv(directory / "llmsandbox", ["llmsandbox", *sys.argv[1:]])
