"""The beginning of each program that measures a package, which calls serve once it has imported that."""

import json
import sys
import time


def serve(operations):
    """Does what is asked: each line on stdin is a JSON list, an operation and its argument; each answer is a line on stdout: what it took in ms, or why it failed."""
    for line in sys.stdin:
        name, argument = json.loads(line)
        start = time.perf_counter()
        try:
            answer = {"words": operations[name](argument)}
        except Exception as err:
            answer = {"error": f"{type(err).__name__}: {err}"}
        answer["ms"] = (time.perf_counter() - start) * 1000
        print(json.dumps(answer), flush=True)
