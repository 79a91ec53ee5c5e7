"""Sandboxes that are open before they are needed."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from llmsandbox._async.sandbox import AsyncSandbox
from llmsandbox._errors import ClosedError, ConnectError, Error, InvalidError, LostError, NotFoundError

if TYPE_CHECKING:
    from typing_extensions import Self


class AsyncPool:
    """Keeps a number of sandboxes open ahead, each of which is used once.

    `make` returns a new sandbox, such as lambda: AsyncSandbox(imports=["numpy"]). The pool opens `size` of them from `async with` or the
    first `acquire` on, and one more for each that is taken. It does not bound how many there are: the server does.
    """

    def __init__(self, make: Callable[[], AsyncSandbox], size: int = 2) -> None:
        if size < 1:
            raise InvalidError(f"size={size}: a pool has at least one sandbox")
        self._make = make
        self._size = size
        self._ready: deque[AsyncSandbox] = deque()
        self._opening: set[asyncio.Task[None]] = set()
        self._closed = False
        self._process = os.getpid()

    async def __aenter__(self) -> Self:
        self._fill()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            await self.close()
        except Error:
            if error is None:
                raise
            # The exception on its way says more, and a cancellation must not get lost.

    async def acquire(self) -> AsyncSandbox:
        """Return an open sandbox, which is the caller's to close. If none is ready, it is opened now."""
        self._fill()
        while self._ready:
            sandbox = self._ready.popleft()
            self._fill()
            try:
                await sandbox.info()
            except (NotFoundError, ConnectError, LostError):
                continue  # it has ended, by its lifetime or with its server
            except BaseException:
                with contextlib.suppress(Error):
                    await sandbox.close()
                raise
            return sandbox
        sandbox = self._make()
        await sandbox._opened()
        return sandbox

    async def close(self) -> None:
        """Remove the sandboxes that are ready. Those that were acquired stay until they are closed."""
        if self._process != os.getpid():
            return  # after fork, they are the other process's
        self._closed = True
        if self._opening:
            await asyncio.wait(self._opening)  # each removes its own
        while self._ready:
            await self._ready.pop().close()

    def _fill(self) -> None:
        if self._closed or self._process != os.getpid():
            raise ClosedError("the pool is closed, or belongs to the process that made it")
        while len(self._ready) + len(self._opening) < self._size:
            task = asyncio.create_task(self._open())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open(self) -> None:
        try:
            sandbox = self._make()
            await sandbox._opened()
            if self._closed:
                await sandbox.close()
            else:
                self._ready.append(sandbox)
        except Exception:
            pass  # acquire opens one itself then, and its caller gets to know why that fails
