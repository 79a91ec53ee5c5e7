"""Runs the same programs on llm-sandbox and on this package, and prints what each said and how long it took.

    python tests/compare.py --original VENV/bin/python --image IMAGE [--runs N]

IMAGE is one of the Docker daemon that DOCKER_HOST names, with `python` and `sh`. The package docker is in the original's environment.
Times are medians of whole programs, with the start of Python and, for this package, of its private server.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import textwrap
import time

PROGRAMS = {
    "run and print": """
        with SandboxSession(**given) as s: print(s.run("print(6 * 7)").stdout.strip())
        """,
    "ten runs": """
        with SandboxSession(**given) as s: print(sum(int(s.run(f"print({n})").stdout) for n in range(10)))
        """,
    "exit code of a program with a callback": """
        with SandboxSession(**given) as s: print(s.run("import sys; print(1); sys.exit(3)", on_stdout=lambda text: None).exit_code)
        """,
    "100,000 characters of three bytes to a callback": """
        got = []
        with SandboxSession(**given) as s: s.run("print('€' * 100000)", on_stdout=got.append); print("".join(got).count("€"))
        """,
    "is the program gone after its timeout?": """
        with SandboxSession(**given) as s:
            try: s.run("import time; open('/tmp/started', 'w')\\nwhile True: open('/tmp/beat', 'a').write('x'); time.sleep(0.05)", timeout=1)
            except SandboxTimeoutError: pass
            first = s.execute_command("wc -c /tmp/beat").stdout; time.sleep(1)
            print("gone" if s.execute_command("wc -c /tmp/beat").stdout == first else "it goes on")
        """,
    "a timeout of 0.5 seconds in an artifact session": """
        with ArtifactSandboxSession(enable_plotting=False, **given) as s:
            try: print(s.run("import time; time.sleep(2); print('not ended')", timeout=0.5).stdout.strip())
            except SandboxTimeoutError: print("SandboxTimeoutError")
        """,
    "execute_command('echo a | wc -c')": """
        with SandboxSession(**given) as s: print(s.execute_command("echo a | wc -c").stdout.strip())
        """,
    "copy an empty file out": """
        with SandboxSession(**given) as s:
            s.execute_command("touch /tmp/empty"); s.copy_from_runtime("/tmp/empty", place + "/empty"); print(os.path.getsize(place + "/empty"))
        """,
    "mode of a file 04755 that is copied out": """
        with SandboxSession(**given) as s:
            s.execute_command("sh -c 'echo x >/tmp/f; chmod 4755 /tmp/f'"); s.copy_from_runtime("/tmp/f", place + "/f")
            print(oct(os.stat(place + "/f").st_mode & 0o7777))
        """,
    "attach by container.id": """
        with SandboxSession(**given) as s:
            s.run("open('/tmp/x', 'w').write('kept')")
            with SandboxSession(container_id=s.container.id, **{k: v for k, v in given.items() if k != "image"}) as t:
                print(t.execute_command("cat /tmp/x").stdout)
        """,
    "what the next user of a pool finds": """
        with create_pool_manager(config=PoolConfig(max_pool_size=1), **given) as pool:
            with SandboxSession(pool=pool) as s: s.execute_command("touch /tmp/secret")
            with SandboxSession(pool=pool) as s: print(s.execute_command("ls /tmp").stdout.split())
        """,
    "user of the code": """
        with SandboxSession(**given) as s: print(s.execute_command("id -u").stdout.strip())
        """,
    "is_safe of 'import sys, os'": """
        module = RestrictedModule(name="os", description="os", severity=SecurityIssueSeverity.HIGH)
        policy = SecurityPolicy(severity_threshold=SecurityIssueSeverity.LOW, restricted_modules=[module])
        with SandboxSession(security_policy=policy, **given) as s: print(s.is_safe("import sys, os")[0])
        """,
}

PRELUDE = """
import os, tempfile, time
from llm_sandbox import *
from llm_sandbox.exceptions import SandboxTimeoutError
from llm_sandbox.pool import PoolConfig, create_pool_manager
from llm_sandbox.security import RestrictedModule
given, place = {given}, tempfile.mkdtemp()
try:
{program}
except Exception as e:
    print(type(e).__name__)
"""


def run(python: str, program: str, given: dict[str, object], runs: int) -> tuple[str, float]:
    """Return what a program printed last, and the median of its times."""
    code = PRELUDE.format(given=given, program=textwrap.indent(textwrap.dedent(program), "    "))
    times: list[float] = []
    said = ""
    for _ in range(runs):
        since = time.perf_counter()
        done = subprocess.run([python, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=600, check=False)
        times.append(time.perf_counter() - since)
        said = (done.stdout.strip().splitlines() or [done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "nothing"])[-1]
    return said, statistics.median(times)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--original", required=True, help="the Python of an environment with llm-sandbox[docker]")
    arguments.add_argument("--image", required=True, help="the image of both on Docker")
    arguments.add_argument("--runs", type=int, default=3)
    options = arguments.parse_args()
    # Without an environment of pip, which the original makes of what it downloads.
    docker: dict[str, object] = {"backend": "docker", "image": options.image, "skip_environment_setup": True}
    here: dict[str, object] = {"skip_environment_setup": True}
    print("| program | llm-sandbox, Docker | | this package, Docker | | this package | |\n| --- | --- | ---: | --- | ---: | --- | ---: |")
    for name, program in PROGRAMS.items():
        original = {**docker, "lang": "python"}
        cells = [run(options.original, program, original, options.runs), run(sys.executable, program, docker, options.runs)]
        cells.append(run(sys.executable, program, here, options.runs))
        row = [name, *(text for said, seconds in cells for text in (f"`{said}`", f"{seconds:.1f} s"))]
        print("| " + " | ".join(text.replace("|", "\\|") for text in row) + " |", flush=True)


if __name__ == "__main__":
    os.environ.pop("LLMSANDBOX_URL", None)
    main()
