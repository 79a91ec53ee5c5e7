"""Writes llmsandbox/_sync from llmsandbox/_async, so that the blocking and the asyncio client cannot differ.

Usage: python unasync.py [--check]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent / "src" / "llmsandbox"
# pool.py and transport.py differ.
FILES = (
    "client.py",
    "copying.py",
    "files.py",
    "kernel.py",
    "process.py",
    "sandbox.py",
    "session.py",
    "terminal.py",
    "tool.py",
    "volumes.py",
    "websocket.py",
)

WORDS = {
    r"async (def|with|for)\b": r"\1",
    r"await ": "",
    r"AsyncGenerator\[(\w+), None\]": r"Generator[\1, None, None]",
    r"\bAsync([A-Z])": r"\1",
    r"\brun_async\b": "run",
    r"\baclosing\b": "closing",
    r"__a(enter|exit)__": r"__\1__",
    r"\basyncio\b": "threading",
    r"\b_async\b": "_sync",
}


def blocking(text: str) -> str:
    """Return the blocking form of a module for asyncio."""
    for pattern, replacement in WORDS.items():
        text = re.sub(pattern, replacement, text)
    return text


def main() -> int:
    """Write the files, or tell whether they are what they should be."""
    stale: list[str] = []
    for name in FILES:
        source, target = PACKAGE / "_async" / name, PACKAGE / "_sync" / name
        text = f"# Written by unasync.py from _async/{name}. Do not edit it.\n" + blocking(source.read_text())
        if not target.exists() or target.read_text() != text:
            stale.append(name)
            if "--check" not in sys.argv:
                target.write_text(text)
    if stale and "--check" in sys.argv:
        print(f"not what unasync.py writes: {', '.join(stale)}: run python unasync.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
