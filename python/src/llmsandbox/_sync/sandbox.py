# Written by unasync.py from _async/sandbox.py. Do not edit it.
"""Sandboxes."""

from __future__ import annotations

import threading
import builtins
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import quote

from llmsandbox._sync.client import Client, default_client
from llmsandbox._sync.files import Files
from llmsandbox._sync.kernel import Kernel
from llmsandbox._sync.process import Process
from llmsandbox._sync.session import Session
from llmsandbox._sync.terminal import Terminal, begun
from llmsandbox._describe import (
    Port,
    ProcessInfo,
    Response,
    SandboxInfo,
    Secret,
    Share,
    VolumeMount,
    parse_process,
    parse_sandbox,
    parse_share,
    volume_mounts,
)
from llmsandbox._errors import ClosedError, ConnectError, Error, InvalidError, NotFoundError
from llmsandbox._json import MalformedError
from llmsandbox._request import (
    EVENTS,
    MAX_RESULT,
    TERMINAL,
    Request,
    checked_id,
    given,
    network_body,
    port_headers,
    port_path,
    program,
    received_id,
    size,
    texts,
)
from llmsandbox._results import Event, Result, parse_result
from llmsandbox._runs import known

if TYPE_CHECKING:
    from typing_extensions import Self


class Sandbox:
    """A sandbox, in which code runs.

    It is opened by `with`, or by its first use, and removed by `close` or at the end of `with`. A sandbox that is
    never closed ends with this process if the server is the process's own, and after its lifetime otherwise.

    Everything that is left out is as the server has it, and requests can ask for less than its limits, but not for more.
    Sizes are numbers of bytes or texts such as "512m"; times are in seconds.

    language: what code is written in, such as "python" (the default), "javascript", "r" or "bash".
    network: "none" (the default), "full" for all public hosts, or a list of hosts such as ["pypi.org", "*.example.org:443"].
    libraries: what to install first, as the language's registry names it.
    env: environment variables.
    secrets: values for requests to certain hosts, which never enter the sandbox.
    volumes: volumes of `Client.volumes` that the sandbox has.
    memory, cpus, pids, disk: limits of the whole sandbox.
    timeout, output: limits of each run, in seconds and bytes.
    lifetime, idle_timeout: when the sandbox ends, whatever runs in it; and how long after its last use.
    labels: names and values that are kept with the sandbox, for `Client.list`.
    template, environment, image: what of the server the sandbox is made of.
    imports: modules that Python has imported before anything runs.
    workdir, user, sudo, writable_root: where code runs, as whom, and whether it may become root or write everywhere.
    resettable: lets `reset` be called.
    best_effort: takes a sandbox for which a limit cannot be enforced.
    client: the server to use; the default is that of `Client()`.
    """

    def __init__(
        self,
        language: str | None = None,
        *,
        network: str | Sequence[str] | None = None,
        libraries: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        secrets: Sequence[Secret] = (),
        volumes: Sequence[VolumeMount] = (),
        memory: int | str | None = None,
        cpus: float | None = None,
        pids: int | None = None,
        disk: int | str | None = None,
        timeout: float | None = None,
        output: int | str | None = None,
        lifetime: float | None = None,
        idle_timeout: float | None = None,
        labels: Mapping[str, str] | None = None,
        template: str | None = None,
        environment: str | None = None,
        image: str | None = None,
        imports: Sequence[str] = (),
        workdir: str | None = None,
        user: str | None = None,
        sudo: bool | None = None,
        writable_root: bool | None = None,
        resettable: bool | None = None,
        best_effort: bool | None = None,
        client: Client | None = None,
    ) -> None:
        self._client = default_client() if client is None else client
        self._body = given(
            language=language,
            network=network_body(network),
            libraries=texts("libraries", libraries),
            env=env,
            secrets=[{"name": s.name, "value": s.value, "hosts": texts("hosts", s.hosts), "body": s.body} for s in secrets],
            volumes=volume_mounts(volumes),
            limits=given(
                memory_bytes=size(memory),
                cpus=cpus,
                pids=pids,
                disk_bytes=size(disk),
                timeout_seconds=timeout,
                output_bytes=size(output),
            ),
            lifetime_seconds=lifetime,
            idle_timeout_seconds=idle_timeout,
            labels=labels,
            template=template,
            environment=environment,
            image=image,
            imports=texts("imports", imports),
            workdir=workdir,
            user=user,
            sudo=sudo,
            writable_root=writable_root,
            resettable=resettable,
            best_effort=best_effort,
        )
        self._lock = threading.Lock()
        self._session: Session | None = None  # once it is open
        self._id = ""
        self._owner = 0  # the process that has opened it; 0: it was attached to
        self._closed = False
        self.files: Files = Files(self)

    @classmethod
    def attach(cls, id: str, *, client: Client | None = None) -> Self:
        """Find a sandbox by its id. It lives on when it is closed here. Fails with NotFoundError if there is none."""
        sandbox = cls(client=client)
        session = sandbox._client._session()
        session = session.below(f"/v1/sandboxes/{checked_id(id)}")
        session.json(Request("GET", ""))
        sandbox._session, sandbox._id = session, id
        return sandbox

    @property
    def id(self) -> str:
        """The id, by which `attach` finds the sandbox."""
        if not self._id:
            raise Error("the sandbox is not open yet: use it in a with statement, or run something first")
        return self._id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._id or 'not open'}{', closed' if self._closed else ''}>"

    def __enter__(self) -> Self:
        self._opened()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.close()
        except Error:
            if error is None:
                raise
            # The exception on its way says more, and a cancellation must not get lost.

    def close(self) -> None:
        """Remove the sandbox and all that is in it. One that was attached to lives on."""
        if self._owner not in (0, os.getpid()):
            return  # after fork, it is the other process's
        with self._lock:
            closed, self._closed = self._closed, True
        if not closed and self._session is not None and self._owner:
            self._remove(self._session)

    def destroy(self) -> None:
        """Remove the sandbox, also if it was attached to."""
        session = self._opened()
        self._closed = True
        self._remove(session)

    def _remove(self, session: Session) -> None:
        try:
            session.empty(Request("DELETE", "", success=204))
        except NotFoundError:
            pass  # it has ended by itself
        except ConnectError:
            if not session.endpoint.process:
                raise
            # It has ended with the private server.

    def _opened(self) -> Session:
        """Open the sandbox unless it is open, and return the session for requests to it."""
        if self._closed:
            raise ClosedError("the sandbox is closed")
        session = self._session
        if session is None:
            with self._lock:
                session = self._session
                if session is None:
                    session = self._client._session()
                    id = received_id(session.json(Request("POST", "/v1/sandboxes", body=self._body, success=201)))
                    session = session.below(f"/v1/sandboxes/{id}")
                    self._session, self._id, self._owner = session, id, os.getpid()
        if session.endpoint.process not in (0, os.getpid()):
            raise ClosedError("the sandbox belongs to the process that opened it: open another one after fork")
        return session

    def run(
        self,
        code: str,
        *,
        language: str | None = None,
        timeout: float | None = None,
        args: Sequence[str] = (),
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        files: Mapping[str, str | bytes] | None = None,
        libraries: Sequence[str] = (),
        cwd: str | None = None,
    ) -> Result:
        """Run code and return what became of it. Code that fails is not an exception: look at the result's status.

        files: other files of the program, by their relative path. libraries: what to install first. cwd: the working directory,
        relative to the sandbox's. A run ends when it is cancelled or interrupted here.
        """
        body = program(code, language, timeout, args, stdin, env, files, libraries, cwd)
        return self._result("/run", body)

    def stream(
        self,
        code: str,
        *,
        language: str | None = None,
        timeout: float | None = None,
        args: Sequence[str] = (),
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        files: Mapping[str, str | bytes] | None = None,
        libraries: Sequence[str] = (),
        cwd: str | None = None,
    ) -> Generator[Event, None, None]:
        """Run code and yield its output as it is written, and then an event "done" with the result.

        The run ends if the generator is closed before.
        """
        body = program(code, language, timeout, args, stdin, env, files, libraries, cwd)
        session = self._opened()
        request = Request("POST", "/run", body=body, accept=EVENTS)
        with closing(session.outcome(request, parse_result)) as events:
            for event in events:
                yield event

    def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Result:
        """Run a program of the sandbox: a line for its shell, or a program and its arguments."""
        what = {"shell": command} if isinstance(command, str) else {"argv": list(command)}
        body = what | given(timeout_seconds=timeout, stdin=stdin, env=env, dir=cwd)
        return self._result("/exec", body)

    def _result(self, path: str, body: Mapping[str, object]) -> Result:
        session = self._opened()
        request = Request("POST", path, body=body)
        return known(parse_result(session.result(request)))

    def start(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        stdin: str | None = None,
        stdin_open: bool = False,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Process:
        """Start a program of the sandbox that goes on without this client: a line for its shell, or a program and its arguments.

        stdin: its input, at most 64 KiB. stdin_open: input comes by `Process.write`.
        """
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        return self._start({"argv": argv} | given(timeout_seconds=timeout, stdin=stdin, env=env, dir=cwd), stdin_open)

    def start_run(
        self,
        code: str,
        *,
        language: str | None = None,
        timeout: float | None = None,
        args: Sequence[str] = (),
        stdin: str | None = None,
        stdin_open: bool = False,
        env: Mapping[str, str] | None = None,
        files: Mapping[str, str | bytes] | None = None,
        libraries: Sequence[str] = (),
        cwd: str | None = None,
    ) -> Process:
        """Start code that goes on without this client. See `run` for the arguments, and `start`."""
        return self._start(program(code, language, timeout, args, stdin, env, files, libraries, cwd), stdin_open)

    def _start(self, body: dict[str, object], stdin_open: bool) -> Process:
        session = self._opened()
        if stdin_open:
            body["stdin_open"] = True
        state = session.json(Request("POST", "/processes", body=body, success=201, also=200), MAX_RESULT)
        id, result = state.integer("id"), state.object("result")
        if id <= 0 and result is None:
            raise MalformedError("the server's answer cannot be used: a program has neither a number nor a result")
        return Process(self, max(id, 0), None if result is None else known(parse_result(result)))

    def process(self, id: int) -> Process:
        """Find a program that `start` or `start_run` started, by its id. Fails with NotFoundError if there is none."""
        process = Process(self, id)
        process.poll()
        return process

    def processes(self) -> builtins.list[ProcessInfo]:
        """List the programs that were started in the sandbox and run, the oldest first."""
        session = self._opened()
        return [parse_process(o) for o in (session.json(Request("GET", "/processes"))).objects("processes")]

    def terminal(
        self,
        command: str | Sequence[str] | None = None,
        *,
        process: int | None = None,
        cols: int | None = None,
        rows: int | None = None,
    ) -> Terminal:
        """Open a terminal, in which the sandbox's shell runs or a command as `exec` has it, or attach to that of a process.

        The size is 80 columns and 24 rows, or what it was, unless both are given. Who attaches takes over from a client that is attached.
        """
        session = self._opened()
        argv = [] if command is None else ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        query = [(name, str(n)) for name, n in (("cols", cols), ("rows", rows), ("process", process)) if n is not None]
        socket = session.websocket("/terminals", query + [("command", part) for part in argv], TERMINAL)
        return Terminal(self, socket, begun(socket))

    def ports(self) -> builtins.list[Port]:
        """List the TCP ports that programs in the sandbox listen on, by their numbers."""
        session = self._opened()
        found = (session.json(Request("GET", "/ports"))).objects("ports")
        return [Port(o.integer("port"), o.text("address")) for o in found]

    def request(
        self,
        port: int,
        path: str = "/",
        *,
        method: str = "GET",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> Response:
        """Send a request to a server that listens on a port of the sandbox, and return its answer, of at most 256 MiB, whatever its status.

        Fails with NotFoundError where nothing listens. Redirects are not followed, and neither cookies nor `Authorization` get there.
        """
        if method not in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            raise InvalidError(f"method={method!r}: use GET, POST, PUT, PATCH or DELETE")
        asked, more = list((query or {}).items()), port_headers(headers or {})
        session = self._opened()
        return session.port(Request(method, port_path(port, path), asked, content=content, more=more))

    def url(self, port: int, path: str = "/") -> str:
        """Return the URL of a port for other programs that have the server's address and an API key, which they send as a header."""
        session = self._opened()
        if session.endpoint.socket:
            raise InvalidError("the server is on a Unix socket, for which there are no URLs: use request, or share")
        return f"{session.endpoint}/v1/sandboxes/{self.id}{quote(port_path(port, path))}"

    def share(self, port: int, seconds: float | None = None) -> Share:
        """Make an address by which anybody can use a port in a browser, for an hour unless seconds are given, and a day at most.

        Fails with UnsupportedError where the server has no domain for ports.
        """
        session = self._opened()
        body = given(port=port, expires_seconds=seconds)
        return parse_share(session.json(Request("POST", "/shares", body=body, success=201)))

    def install(self, *libraries: str) -> None:
        """Install libraries of the sandbox's language, such as "numpy>=2". Fails with InstallError."""
        self._do("POST", "/libraries", {"libraries": list(libraries)})

    def kernel(
        self,
        language: str | None = None,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        libraries: Sequence[str] = (),
        plain: bool | None = None,
    ) -> Kernel:
        """Open a kernel: an interpreter that keeps its state between cells.

        plain: the language's own shell where there is a richer one, that is, Python without IPython. It opens sooner.
        """
        session = self._opened()
        body = given(language=language, env=env, dir=cwd, libraries=texts("libraries", libraries), plain=plain)
        made = session.json(Request("POST", "/kernels", body=body, success=201))
        return Kernel(self, received_id(made), made.text("language"))

    def info(self) -> SandboxInfo:
        """Describe the sandbox as it is now."""
        session = self._opened()
        return parse_sandbox(session.json(Request("GET", "")))

    def set_lifetime(self, seconds: float) -> None:
        """Have the sandbox end that many seconds from now."""
        session = self._opened()
        session.json(Request("PATCH", "", body={"lifetime_seconds": seconds}))

    def set_network(self, network: str | Sequence[str]) -> None:
        """Change what the sandbox may reach: "none", "full" or a list of hosts."""
        session = self._opened()
        session.json(Request("PATCH", "", body={"network": network_body(network)}))

    def pause(self) -> None:
        """Stop all that runs in the sandbox until `resume`."""
        self._do("POST", "/pause")

    def resume(self) -> None:
        """Let a paused sandbox go on."""
        self._do("POST", "/resume")

    def reset(self) -> None:
        """Make the sandbox what it was at first. It must have been opened with resettable=True."""
        self._do("POST", "/reset")

    def _do(self, method: str, path: str, body: Mapping[str, object] | None = None) -> None:
        session = self._opened()
        session.empty(Request(method, path, body=body, success=204))
