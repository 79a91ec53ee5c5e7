"""`python -m llm_sandbox.mcp_server.server` and the script `llm-sandbox-mcp`: become `llmsandbox mcp`, with the same variables."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from llmsandbox import StartError
from llmsandbox._local import find_command

from llm_sandbox.const import SandboxBackend

_LOCAL = (SandboxBackend.BUBBLEWRAP, SandboxBackend.NSJAIL)


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables as the command reads them."""
    env = dict(variables)
    backend = env.get("BACKEND", "").lower()
    if backend in _LOCAL:
        env["BACKEND"] = "local"
    if backend == SandboxBackend.PODMAN and env.get("DOCKER_HOST") and not env.get("CONTAINER_HOST"):
        env["CONTAINER_HOST"] = env["DOCKER_HOST"]  # which the docker-py of llm-sandbox would read
    return env


def main() -> None:
    """Serve on standard input and output. Arguments are those of `llmsandbox mcp`."""
    try:
        command = find_command()
    except StartError as e:
        sys.exit(f"llm-sandbox-mcp: {e}")
    argv, env = ["llmsandbox", "mcp", *sys.argv[1:]], environment(os.environ)
    if sys.platform == "win32":  # where a program cannot become another
        sys.exit(subprocess.call([command, *argv[1:]], env=env))
    os.execve(command, argv, env)


if __name__ == "__main__":
    main()
