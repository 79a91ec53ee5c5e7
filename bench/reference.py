"""Serves one session of the Python package llm-sandbox, a command a line.

Each line on stdin is a JSON list, an operation and its options; each answer is a line
on stdout: what the operation took in ms, or why it failed. It counts as it would for a
program that has imported the package already.
"""

import importlib.metadata
import json
import sys
import time

from llm_sandbox import SandboxSession

session = None


def do_open(options):
    global session
    session = SandboxSession(backend="docker", lang="python", keep_template=True, **options)
    session.open()


def do_run(code):
    out = session.run(code)
    if out.exit_code != 0:
        raise RuntimeError(f"exit code {out.exit_code}: {out.stdout}{out.stderr}")


def do_close(_):
    session.close()


def do_version(_):
    return importlib.metadata.version("llm-sandbox")


operations = {"open": do_open, "run": do_run, "close": do_close, "version": do_version}
for line in sys.stdin:
    name, argument = json.loads(line)
    start = time.perf_counter()
    try:
        answer = {"words": operations[name](argument)}
    except Exception as err:
        answer = {"error": f"{type(err).__name__}: {err}"}
    answer["ms"] = (time.perf_counter() - start) * 1000
    print(json.dumps(answer), flush=True)
