"""Sandboxes that are open before they are needed."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from llmsandbox._errors import ClosedError, ConnectError, Error, InvalidError, LostError, NotFoundError
from llmsandbox._sync.sandbox import Sandbox

if TYPE_CHECKING:
    from typing_extensions import Self


class Pool:
    """Keeps a number of sandboxes open ahead, each of which is used once.

    `make` returns a new sandbox, such as lambda: Sandbox(imports=["numpy"]). The pool opens `size` of them, in threads of its own, from
    `with` or the first `acquire` on, and one more for each that is taken. It does not bound how many there are: the server does. It can be
    used by several threads.
    """

    def __init__(self, make: Callable[[], Sandbox], size: int = 2) -> None:
        if size < 1:
            raise InvalidError(f"size={size}: a pool has at least one sandbox")
        self._make = make
        self._size = size
        self._lock = threading.Lock()  # of what follows
        self._ready: deque[Sandbox] = deque()
        self._opening: set[threading.Thread] = set()
        self._closed = False
        self._process = os.getpid()

    def __enter__(self) -> Self:
        self._fill()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.close()
        except Error:
            if error is None:
                raise
            # The exception on its way says more.

    def acquire(self) -> Sandbox:
        """Return an open sandbox, which is the caller's to close. If none is ready, it is opened now."""
        self._fill()
        while True:
            with self._lock:
                if not self._ready:
                    break
                sandbox = self._ready.popleft()
            try:
                self._fill()
                sandbox.info()
            except (NotFoundError, ConnectError, LostError):
                continue  # it has ended, by its lifetime or with its server
            except BaseException:
                with contextlib.suppress(Error):
                    sandbox.close()
                raise
            return sandbox
        sandbox = self._make()
        sandbox._opened()
        return sandbox

    def close(self) -> None:
        """Remove the sandboxes that are ready. Those that were acquired stay until they are closed."""
        if self._process != os.getpid():
            return  # after fork, they are the other process's
        with self._lock:
            self._closed = True
            opening = list(self._opening)
        for thread in opening:
            thread.join()  # each removes its own
        while self._ready:
            self._ready.pop().close()

    def _fill(self) -> None:
        if self._process != os.getpid():
            raise ClosedError("the pool belongs to the process that made it: make another one after fork")
        with self._lock:
            if self._closed:
                raise ClosedError("the pool is closed")
            while len(self._ready) + len(self._opening) < self._size:
                thread = threading.Thread(target=self._open, name="llmsandbox pool")
                thread.start()
                self._opening.add(thread)

    def _open(self) -> None:
        sandbox = None
        try:
            made = self._make()
            made._opened()
            sandbox = made
        except Exception:
            pass  # acquire opens one itself then, and its caller gets to know why that fails
        with self._lock:
            self._opening.discard(threading.current_thread())
            if sandbox is not None and not self._closed:
                self._ready.append(sandbox)
                return
        if sandbox is not None:
            with contextlib.suppress(Error):
                sandbox.close()
