"""Does what is asked by the package llmsandbox, for operations.py. The first one is attach."""

import sys

sys.path.insert(0, "python/src")
import llmsandbox

sandbox = None


def attach(where):
    global sandbox
    url, key, id = where
    sandbox = llmsandbox.Sandbox.attach(id, client=llmsandbox.Client(url, key))


def run(code):
    result = sandbox.run(code)
    if not result.ok:
        raise RuntimeError(f"{result.status}: {result.stderr}")


serve({"attach": attach, "run": run})
