"""Does what is asked by the package llmsandbox, a command a line: see reference.py. The first one is attach."""

import json
import sys
import time

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


operations = {"attach": attach, "run": run}
for line in sys.stdin:
    name, argument = json.loads(line)
    start = time.perf_counter()
    try:
        answer = {"words": operations[name](argument)}
    except Exception as err:
        answer = {"error": f"{type(err).__name__}: {err}"}
    answer["ms"] = (time.perf_counter() - start) * 1000
    print(json.dumps(answer), flush=True)
