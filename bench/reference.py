"""Has one session of the Python package llm-sandbox, for operations.py."""

import importlib.metadata

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


serve({"open": do_open, "run": do_run, "close": do_close, "version": do_version})
