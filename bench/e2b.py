"""Does what is asked by E2B's Python SDK, for operations.py. The first one is connect."""

import importlib.metadata
import os
import time
from concurrent.futures import ThreadPoolExecutor

from e2b import Sandbox

kept = None
made = []


def connect(where):
    global kept
    address, key = where
    os.environ.update(E2B_API_URL=address, E2B_SANDBOX_URL=address, E2B_API_KEY=key)
    kept = Sandbox.create(timeout=3600)
    return importlib.metadata.version("e2b")


def create(_=None):
    start = time.perf_counter()
    made.append(Sandbox.create(timeout=600))
    made[-1].commands.run("true")
    return str((time.perf_counter() - start) * 1000)


def command(_):
    kept.commands.run("true")


def up(path):
    with open(path, "rb") as file:
        kept.files.write("up", file)


def down(size):
    got = sum(len(piece) for piece in kept.files.read("up", format="stream"))
    if got != size:
        raise RuntimeError(f"{got} bytes came")


def many(n):
    with ThreadPoolExecutor(n) as pool:
        return "[" + ",".join(pool.map(create, range(n))) + "]"


def tidy(_):
    """Removes what was made, which is not measured."""
    while made:
        made.pop().kill()


serve({"connect": connect, "create": create, "command": command, "up": up, "down": down, "many": many, "tidy": tidy})
tidy(None)
if kept:
    kept.kill()
