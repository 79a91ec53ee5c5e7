"""What tests of all frameworks have: a command, and a tool."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from llmsandbox import AsyncCodeTool, CodeTool
from scripted import Call, ModelServer, Turn

ROOT = Path(__file__).parents[2]
# Nothing is asked of a network, nor told to anybody.
os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
os.environ["OPENAI_API_KEY"] = os.environ["ANTHROPIC_API_KEY"] = "scripted"
os.environ["PATH"] = f"{ROOT / 'bin' / 'test'}:{os.environ['PATH']}"

PICTURE = (
    "import base64\n"
    "png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=='\n"
    "open('artifacts/plot.png', 'wb').write(base64.b64decode(png))\n"
)

# Three calls: the second finds a variable of the first and makes an image, and the third fails.
SCRIPT: list[Turn] = [
    Call("run_python", {"code": "x = 6"}),
    Call("run_python", {"code": PICTURE + "print(x * 7)"}),
    Call("run_python", {"code": "1 / 0"}),
    "The answer is 42.",
]


@pytest.fixture
def serve() -> Iterator[Callable[..., ModelServer]]:
    """Start a scripted model server."""
    with ExitStack() as stack:

        def start(*script: Turn) -> ModelServer:
            server = ModelServer(*script)
            stack.callback(server.close)
            return server

        yield start


@pytest.fixture
def code() -> Iterator[CodeTool]:
    with CodeTool() as tool:
        yield tool


@pytest.fixture
async def code_async() -> AsyncIterator[AsyncCodeTool]:
    async with AsyncCodeTool() as tool:
        yield tool
