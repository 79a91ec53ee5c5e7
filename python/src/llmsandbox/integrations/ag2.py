"""AG2: an environment of its SandboxCodeTool.

    async with SandboxEnvironment() as environment:
        agent = Agent("analyst", config=config, tools=[SandboxCodeTool(environment)])
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from ag2.context import ConversationContext
from ag2.tools.code import CodeLanguage, CodeRunResult

from llmsandbox._async.sandbox import AsyncSandbox
from llmsandbox.integrations._kernels import Kernels

if TYPE_CHECKING:
    from typing_extensions import Self


class SandboxEnvironment:
    """Runs an agent's code in a sandbox, whose variables and files stay until it is closed.

    sandbox: what opens a sandbox.
    languages: what code may be written in, of what the sandbox has.
    timeout: the longest that one piece of code may take, in seconds.
    """

    def __init__(
        self,
        sandbox: Callable[[], AsyncSandbox] = AsyncSandbox,
        *,
        languages: tuple[CodeLanguage, ...] = ("python", "bash"),
        timeout: float | None = 60,
    ) -> None:
        self._languages = languages
        self._kernels = Kernels(sandbox, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the sandbox."""
        await self._kernels.close()

    @property
    def supported_languages(self) -> tuple[CodeLanguage, ...]:
        """What code may be written in."""
        return self._languages

    async def run(self, code: str, language: CodeLanguage, *, context: ConversationContext | None = None) -> CodeRunResult:
        """Run code."""
        if language not in self._languages:
            return CodeRunResult(f"code in {language} is not run here: use {' or '.join(self._languages)}", 1)
        exit_code, text = await self._kernels.run(language, code)
        return CodeRunResult(text, exit_code)
