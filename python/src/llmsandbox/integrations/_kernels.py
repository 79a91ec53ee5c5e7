"""Code in several languages in one sandbox, whose variables stay."""

from __future__ import annotations

from collections.abc import Callable

from llmsandbox._async.kernel import AsyncKernel
from llmsandbox._async.sandbox import AsyncSandbox
from llmsandbox._tool import ToolLimits, output_of


class Kernels:
    """A sandbox that its first use opens, and a kernel for each language that is used."""

    def __init__(self, sandbox: Callable[[], AsyncSandbox], timeout: float | None) -> None:
        self._open = sandbox
        self._timeout = timeout
        self._sandbox: AsyncSandbox | None = None
        self._kernels: dict[str, AsyncKernel] = {}

    async def run(self, language: str, code: str) -> tuple[int, str]:
        """Run code, and return its exit code, which is not 0 if it has failed, and its output."""
        if self._sandbox is None:
            self._sandbox = self._open()
        if language not in self._kernels:
            self._kernels[language] = await self._sandbox.kernel(language)
        cell = await self._kernels[language].run(code, timeout=self._timeout)
        output = output_of(cell, ToolLimits(images=0))
        return (cell.exit_code or 1) if output.is_error else 0, output.text

    async def close(self) -> None:
        """Close the sandbox. The next use opens another one."""
        sandbox, self._sandbox = self._sandbox, None
        self._kernels.clear()
        if sandbox is not None:
            await sandbox.close()
