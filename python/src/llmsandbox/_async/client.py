"""The client of a server, and what runs without a sandbox that stays."""

from __future__ import annotations

import builtins
import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from llmsandbox import _endpoint, _local
from llmsandbox._async.session import AsyncSession
from llmsandbox._async.transport import AsyncTransport
from llmsandbox._async.volumes import AsyncVolumes
from llmsandbox._describe import PoolInfo, SandboxInfo, VolumeMount, parse_pool, parse_sandbox, volume_mounts
from llmsandbox._errors import InvalidError
from llmsandbox._json import MalformedError
from llmsandbox._request import Request, given, label_queries, network_body, program, size, texts
from llmsandbox._results import Result, parse_result
from llmsandbox._runs import known

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_PAGES = 100


class AsyncClient:
    """Uses one server with one API key.

    Without a URL, that is the private server of this process, which the first call starts, and which ends with the process.
    LLMSANDBOX_URL and LLMSANDBOX_API_KEY set the default of `url` and `api_key`. `async with` closes idle connections at its end;
    sandboxes are not closed by it.

    `isolation="process"` has a private server use the weaker isolation that any container allows, where the `not_enforced` of
    results names the limits that are not enforced. LLMSANDBOX_ISOLATION sets the default. `server_args` are further flags of
    `llmsandbox serve` for a private server, such as ["--memory", "2g"].
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        isolation: str | None = None,
        server_args: Sequence[str] = (),
    ) -> None:
        if url is None:
            url = os.environ.get("LLMSANDBOX_URL") or None
        if url is not None and (isolation is not None or server_args):
            raise InvalidError("isolation and server_args are for a private server: leave them out where a URL is set")
        if url is None and api_key is not None:
            raise InvalidError("api_key needs the URL of a server: set url or LLMSANDBOX_URL")
        self._args = _local.arguments(isolation, texts("server_args", server_args))
        self._transport = AsyncTransport()
        self._endpoint = None
        if url is not None:
            self._endpoint = _endpoint.parse(url, os.environ.get("LLMSANDBOX_API_KEY", "") if api_key is None else api_key)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'private server' if self._endpoint is None else str(self._endpoint)!r})"

    async def __aenter__(self) -> Self:
        self._transport.keep_idle()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    @property
    def volumes(self) -> AsyncVolumes:
        """The volumes of the API key's project."""
        return AsyncVolumes(self)

    async def close(self) -> None:
        """Close idle connections. Sandboxes stay; a private server ends with the process."""
        await self._transport.close()

    async def list(self, *, labels: Mapping[str, str] | None = None) -> builtins.list[SandboxInfo]:
        """Return the sandboxes of the API key's project that have all of the labels."""
        query = [("limit", "1000"), *label_queries(labels or {})]
        session = await self._session()
        found: builtins.list[SandboxInfo] = []
        after = ""
        for _ in range(MAX_PAGES):
            page = await session.json(Request("GET", "/v1/sandboxes", query=query + ([("after", after)] if after else [])))
            found += [parse_sandbox(o) for o in page.objects("sandboxes")]
            after = page.text("next")
            if not after:
                return found
        raise MalformedError(f"the server's answer cannot be used: the list of sandboxes does not end after {MAX_PAGES} pages")

    async def pool(self) -> PoolInfo:
        """Tell what the server keeps ready for `run`."""
        session = await self._session()
        return parse_pool(await session.json(Request("GET", "/v1/pool")))

    async def _session(self) -> AsyncSession:
        endpoint = self._endpoint
        if endpoint is None:
            endpoint = await self._transport.call(lambda: _local.endpoint(self._args))
        return AsyncSession(self._transport, endpoint)


_default: AsyncClient | None = None


def default_client() -> AsyncClient:
    """Return the client of sandboxes that are given none."""
    global _default
    if _default is None:
        _default = AsyncClient()
    return _default


async def run_async(
    code: str,
    *,
    language: str | None = None,
    timeout: float | None = None,
    args: Sequence[str] = (),
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    files: Mapping[str, str | bytes] | None = None,
    libraries: Sequence[str] = (),
    network: str | Sequence[str] | None = None,
    memory: int | str | None = None,
    cpus: float | None = None,
    pids: int | None = None,
    disk: int | str | None = None,
    image: str | None = None,
    environment: str | None = None,
    volumes: Sequence[VolumeMount] = (),
    client: AsyncClient | None = None,
) -> Result:
    """Run code in a sandbox of its own, which is removed afterwards. See AsyncSandbox and its `run` for the arguments."""
    body = program(code, language, timeout, args, stdin, env, files, libraries, None) | given(
        network=network_body(network),
        limits=given(memory_bytes=size(memory), cpus=cpus, pids=pids, disk_bytes=size(disk)),
        image=image,
        environment=environment,
        volumes=volume_mounts(volumes),
    )
    session = await (default_client() if client is None else client)._session()
    return known(parse_result(await session.result(Request("POST", "/v1/run", body=body))))
