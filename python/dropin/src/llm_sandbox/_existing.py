"""Containers and pods of somebody else. A server has none of these, so each run is one of the command."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import shlex
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import llmsandbox
from llmsandbox._json import decode_object
from llmsandbox._local import find_command
from llmsandbox._results import parse_result

from llm_sandbox.data import StreamCallback
from llm_sandbox.exceptions import CommandFailedError, ContainerError

_PIECE = 64 << 10


@dataclass
class ExistingContainer:
    """A container that stays as it is, but for the files that are written in it.

    `flags` name it. Its user and its limits hold for what runs.
    """

    name: str
    flags: tuple[str, ...]
    workdir: str
    language: str
    address: Mapping[str, str]
    env: Mapping[str, str]
    libraries: list[str] = field(default_factory=list[str])

    def request(self, body: Mapping[str, Any], on_stdout: StreamCallback | None, on_stderr: StreamCallback | None) -> llmsandbox.Result:
        """Run what a request to a server would: `code`, or `shell`. With a callback, the output comes while it is written."""
        is_code = "code" in body
        code, language = (str(body["code"]), str(body["language"])) if is_code else (str(body["shell"]), "bash")
        timeout = body.get("timeout_seconds")
        flags = ["--timeout", "unlimited" if timeout is None else f"{max(int(timeout * 1000), 1)}ms"]
        if is_code:
            flags += [flag for name in self.libraries for flag in ("--lib", name)]
        elif body.get("dir") != self.workdir:
            code = f"cd {shlex.quote(str(body['dir']))} || exit\n{code}"
        if on_stdout is None and on_stderr is None:
            return self._result(language, code, *flags)
        return self._streamed(language, code, flags, on_stdout, on_stderr)

    def check(self) -> None:
        """Raise ContainerError unless something runs in the container."""
        self._result("bash", "true")

    def install(self, names: Sequence[str]) -> None:
        """Install libraries below the working directory, where they stay."""
        flags = [flag for name in [*self.libraries, *names] for flag in ("--lib", name)]
        self._result(self.language, "", *flags, failed=lambda reason: CommandFailedError("install", 1, reason))
        self.libraries += [name for name in names if name not in self.libraries]

    def upload(self, source: str, target: str) -> None:
        """Copy a file or directory of this machine into the container."""
        self._result("bash", "true", "--file", f"{os.path.realpath(source)}:{target}")

    def download(self, path: str, directory: str) -> Path:
        """Copy a file or directory of the container into a directory of this machine, which is empty, and return what has come."""
        if self._result("bash", f"test -e {shlex.quote(path)}").exit_code != 0:
            raise FileNotFoundError(f"File {path} not found in container")
        self._result("bash", "true", "--out", f"{path}:{directory}")
        return next(Path(directory).iterdir())

    def _command(self, language: str, *flags: str) -> list[str]:
        env = [flag for name in self.env for flag in ("--env", f"{name}={self.env[name]}")]
        place = ("--keep-files", "--workdir", self.workdir, "--stdin", os.devnull)
        return [find_command(), "run", *self.flags, *place, *env, "--lang", language, *flags, "-"]

    def _result(
        self, language: str, code: str, *flags: str, failed: Callable[[str], Exception] | None = None
    ) -> llmsandbox.Result:
        try:
            done = subprocess.run(
                self._command(language, "--json", *flags), input=code.encode(), env={**os.environ, **self.address}, capture_output=True, check=False
            )
        except OSError as e:
            raise ContainerError(f"container {self.name}: {e}") from e
        try:
            result = parse_result(decode_object(done.stdout))
        except llmsandbox.Error:
            raise ContainerError(f"container {self.name}: {done.stderr.decode(errors='replace').strip()[-4096:]}") from None
        if result.status == "setup_failed":
            if "no such sandbox" in result.reason:
                raise ContainerError(f"Container {self.name} not found")
            raise (failed or ContainerError)(f"container {self.name}: {result.reason}")
        return result

    def _streamed(
        self, language: str, code: str, flags: Sequence[str], on_stdout: StreamCallback | None, on_stderr: StreamCallback | None
    ) -> llmsandbox.Result:
        process = subprocess.Popen(
            self._command(language, *flags), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **self.address}
        )
        assert process.stdin and process.stdout and process.stderr
        stdout: list[str] = []
        stderr: list[str] = []
        failures: list[BaseException] = []

        def read(file: IO[bytes], kept: list[str], callback: StreamCallback | None) -> None:
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            try:
                while data := os.read(file.fileno(), _PIECE):
                    if text := decoder.decode(data):
                        kept.append(text)
                        if callback is not None and not failures:
                            callback(text)
            except BaseException as e:
                failures.append(e)
                process.terminate()

        with process:
            other = threading.Thread(target=read, args=(process.stderr, stderr, on_stderr), daemon=True)
            other.start()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(code.encode())
                process.stdin.close()
            read(process.stdout, stdout, on_stdout)
            other.join()
        if failures:
            raise failures[0]
        return self._observed(process.returncode, "".join(stdout), "".join(stderr))

    def _observed(self, code: int, stdout: str, stderr: str) -> llmsandbox.Result:
        """Return what the exit code of the command says. It adds a line of its own to the standard error where it is not the program's."""
        own = stderr.rpartition("llmsandbox: ")[2] if "llmsandbox: " in stderr else ""
        status = {0: "ok", 124: "timeout", 137: "out_of_memory", 153: "output_limit"}.get(code, "error") if code == 0 or own else "error"
        if code == 125 and own:
            raise ContainerError(f"container {self.name}: {own.strip()}")
        fields: dict[str, object] = {"status": status, "exit_code": code, "stdout": stdout, "stderr": stderr, "sandbox_id": self.name}
        return parse_result(decode_object(json.dumps(fields).encode()))

