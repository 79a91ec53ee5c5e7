# Runs each program of a list in a fork of its own, with a directory for what is captured
# of it, as if it had been started by itself. Importing matplotlib takes longer than all
# that most of them do.
import json
import os
import sys

import matplotlib.pyplot
from llmsandbox_capture import store

with open(sys.argv[1]) as f:
    programs = json.load(f)
for program in programs:
    child = os.fork()
    if child == 0:
        store.DIRECTORY = program["directory"]
        os.chdir(program["dir"])
        for fd in (1, 2):
            os.dup2(os.open("output", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), fd)
        exec(compile(program["code"], "main.py", "exec"), {"__name__": "__main__"})
        sys.exit()
    os.waitpid(child, 0)
