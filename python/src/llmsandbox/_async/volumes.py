"""Volumes of a project."""

from __future__ import annotations

import builtins
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from llmsandbox._async.copying import receive_archive, send_directory
from llmsandbox._describe import Copied, Volume, parse_volume
from llmsandbox._directory import MAX_FILES
from llmsandbox._request import Request, checked_volume, given, size

if TYPE_CHECKING:
    from llmsandbox._async.client import AsyncClient


class AsyncVolumes:
    """The volumes of the API key's project: directories that stay when sandboxes end. `AsyncClient.volumes` has them.

    The server must allow them: a private one by server_args=["--max-volumes", "10"].
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def create(self, name: str, *, labels: Mapping[str, str] | None = None, size_limit: int | str | None = None) -> Volume:
        """Create an empty volume. Not every server can limit its size."""
        session = await self._client._session()
        body = given(name=name, labels=labels, size_bytes=size(size_limit))
        return parse_volume(await session.json(Request("POST", "/v1/volumes", body=body, success=201)))

    async def list(self) -> builtins.list[Volume]:
        """List the volumes, sorted by name."""
        session = await self._client._session()
        return [parse_volume(o) for o in (await session.json(Request("GET", "/v1/volumes"))).objects("volumes")]

    async def remove(self, name: str, *, force: bool = False) -> None:
        """Remove a volume with all that is in it. force: also while a sandbox has it, which lives on without the files."""
        session = await self._client._session()
        query = [("force", "true")] if force else []
        await session.empty(Request("DELETE", f"/v1/volumes/{checked_volume(name)}", query, success=204))

    async def upload(self, name: str, source: str | os.PathLike[str], path: str) -> Copied:
        """Copy a file or directory of this machine to a path of a volume, whose own directory is "/". See `AsyncFiles.upload`."""
        session = await self._client._session()
        archive = f"/v1/volumes/{checked_volume(name)}/archive"
        if os.path.isdir(source):
            return await send_directory(session, archive, Path(source), path)
        os.stat(source)  # or fail as for any file that is missing
        directory, _, file = path.rstrip("/").rpartition("/")
        return await send_directory(session, archive, Path(source), directory or "/", file)

    async def download(
        self, name: str, path: str, target: str | os.PathLike[str], *, max_bytes: int | str | None = None, max_files: int = MAX_FILES
    ) -> Copied:
        """Copy a file or directory of a volume to a path of this machine. See `AsyncFiles.download`."""
        session = await self._client._session()
        archive = f"/v1/volumes/{checked_volume(name)}/archive"
        return await receive_archive(session, archive, path, Path(os.path.abspath(target)), size(max_bytes), max_files)
