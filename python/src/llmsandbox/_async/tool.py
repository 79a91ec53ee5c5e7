"""A tool by which a model runs code, for any framework."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from llmsandbox._async.kernel import AsyncKernel
from llmsandbox._async.sandbox import AsyncSandbox
from llmsandbox._errors import ClosedError, Error, InstallError, InvalidError, LostError, NotFoundError, RefusedError, TooLargeError
from llmsandbox._results import Outcome
from llmsandbox._tool import ToolLimits, ToolOutput, description, output_of, parameters, parse_call, refusal

if TYPE_CHECKING:
    from typing_extensions import Self

# What a model can do something about.
_REFUSED = (InvalidError, RefusedError, InstallError, TooLargeError)


class AsyncCodeTool:
    """A tool by which a model runs code.

    Each conversation has a sandbox of its own, which its first call opens. Calls of one conversation run in turn. What the
    model decides is the code, and with `libraries`, what is installed: all else is yours.

    sandbox: what opens a sandbox, such as `lambda: AsyncSandbox(network=["pypi.org"], memory="1g", idle_timeout=600)`.
    language: what the code is written in; libraries are installed for the sandbox's own language.
    stateful: keeps variables between the calls of a conversation; files are kept either way.
    libraries: lets the model have libraries installed.
    timeout: the longest that a call may take, in seconds.
    max_conversations: when there are more, the sandbox that was not used for the longest time is closed.
    """

    def __init__(
        self,
        sandbox: Callable[[], AsyncSandbox] = AsyncSandbox,
        *,
        language: str = "python",
        stateful: bool = True,
        libraries: bool = False,
        timeout: float | None = 60,
        max_conversations: int = 64,
        limits: ToolLimits | None = None,
    ) -> None:
        if max_conversations < 1:
            raise InvalidError("max_conversations: use a number above 0")
        self._sandbox = sandbox
        self.language = language
        self.name = f"run_{language}"
        self.description = description(language, stateful, libraries)
        self.parameters = parameters(language, libraries)  # a JSON schema
        self._stateful = stateful
        self.takes_libraries = libraries
        self._timeout = timeout
        self._most = max_conversations
        self._limits = ToolLimits() if limits is None else limits
        self._lock = asyncio.Lock()
        self._conversations: dict[str, _Conversation] = {}  # the one that was used last is the last one
        self._closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the sandboxes of all conversations."""
        self._closed = True
        async with self._lock:
            ended = list(self._conversations.values())
            self._conversations.clear()
        for conversation in ended:
            async with conversation.lock:
                await conversation.close()

    async def end(self, conversation: str) -> None:
        """Close the sandbox of a conversation, if it has one."""
        async with self._lock:
            ended = self._conversations.pop(conversation, None)
        if ended is not None:
            async with ended.lock:
                await ended.close()

    async def call(self, arguments: str | Mapping[str, object], *, conversation: str = "") -> ToolOutput:
        """Run the code of a call whose arguments are a model's: JSON, or the object that this stands for."""
        try:
            call = parse_call(arguments, self.takes_libraries)
        except InvalidError as e:
            return refusal(e)
        return await self.run(call.code, call.libraries, conversation=conversation)

    async def run(self, code: str, libraries: Sequence[str] = (), *, conversation: str = "") -> ToolOutput:
        """Run code in the sandbox of a conversation, and return what the model gets of it.

        Code that fails, is refused or takes too long is an output that says so. What a model can do nothing about is an
        exception, such as a server that is not reached.
        """
        if libraries and not self.takes_libraries:
            return refusal(InvalidError("libraries cannot be installed here: use those that are there"))
        entered, idle = await self._enter(conversation)
        try:
            if idle is not None:
                with suppress(Error):  # then it ends by itself, at its lifetime
                    await idle.close()
            async with entered.lock:
                return await self._run(entered, code, libraries)
        finally:
            async with self._lock:
                entered.users -= 1

    async def _enter(self, key: str) -> tuple[_Conversation, _Conversation | None]:
        """Return a conversation, and another one to close in its place."""
        async with self._lock:
            if self._closed:
                raise ClosedError("the tool is closed")
            entered = self._conversations.pop(key, None) or _Conversation()
            entered.users += 1
            self._conversations[key] = entered
            if len(self._conversations) <= self._most:
                return entered, None
            for other, conversation in self._conversations.items():
                if not conversation.users:
                    return entered, self._conversations.pop(other)
            return entered, None

    async def _run(self, conversation: _Conversation, code: str, libraries: Sequence[str]) -> ToolOutput:
        note = ""
        if conversation.sandbox is not None:
            try:
                return output_of(await self._outcome(conversation, code, libraries), self._limits)
            except _REFUSED as e:
                return refusal(e)
            except LostError as e:
                await conversation.forget()
                return ToolOutput(f"It is not known what the code has done, and its variables and files are gone: {e}", is_error=True)
            except NotFoundError:
                await conversation.forget()
                note = "The sandbox of the calls before had ended: their variables and files are gone."
        conversation.sandbox = self._sandbox()
        try:
            return output_of(await self._outcome(conversation, code, libraries), self._limits, note)
        except _REFUSED as e:
            return refusal(e)
        except BaseException:
            await conversation.forget()
            raise

    async def _outcome(self, conversation: _Conversation, code: str, libraries: Sequence[str]) -> Outcome:
        sandbox = conversation.sandbox
        assert sandbox is not None
        if libraries:
            await sandbox.install(*libraries)
        if not self._stateful:
            return await sandbox.run(code, language=self.language, timeout=self._timeout)
        if conversation.kernel is None:
            conversation.kernel = await sandbox.kernel(self.language)
        return await conversation.kernel.run(code, timeout=self._timeout)


class _Conversation:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0  # calls that run or wait
        self.sandbox: AsyncSandbox | None = None
        self.kernel: AsyncKernel | None = None

    async def close(self) -> None:
        sandbox, self.sandbox, self.kernel = self.sandbox, None, None
        if sandbox is not None:
            await sandbox.close()

    async def forget(self) -> None:
        """Close a sandbox that may have ended."""
        with suppress(Error):
            await self.close()
