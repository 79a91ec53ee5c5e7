"""Runs programs in the sandlock package, a command a line: see reference.py."""

import json
import sys
import time

import sandlock

sandbox = sandlock.Sandbox(fs_readable=["/usr", "/lib", "/lib64", "/bin", "/etc", "/proc/self", "/dev/urandom"], fs_writable=["/tmp"])
for line in sys.stdin:
    _, argv = json.loads(line)
    start = time.perf_counter()
    result = sandbox.run(argv)
    answer = {"ms": (time.perf_counter() - start) * 1000}
    if not result.success or result.exit_code != 0:
        answer["error"] = str(result)
    print(json.dumps(answer), flush=True)
