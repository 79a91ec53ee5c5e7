"""AutoGen: an executor of code blocks, for a CodeExecutorAgent or a PythonCodeExecutionTool.

    async with SandboxCodeExecutor() as executor:
        agent = CodeExecutorAgent("executor", code_executor=executor)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult
from pydantic import BaseModel

from llmsandbox._async.sandbox import AsyncSandbox
from llmsandbox.integrations._kernels import Kernels

_NAMES = {"py": "python", "python3": "python", "js": "javascript", "sh": "bash", "shell": "bash", "c++": "cpp"}


class SandboxCodeExecutor(CodeExecutor):
    """Runs blocks of code in a sandbox, whose variables and files stay until it is stopped or restarted.

    sandbox: what opens a sandbox.
    languages: what blocks may be written in, of what the sandbox has.
    timeout: the longest that a block may take, in seconds.
    """

    component_config_schema = BaseModel  # it has none: a function cannot be written to a file

    def __init__(
        self, sandbox: Callable[[], AsyncSandbox] = AsyncSandbox, *, languages: tuple[str, ...] = ("python", "bash"), timeout: float | None = 60
    ) -> None:
        self._languages = languages
        self._kernels = Kernels(sandbox, timeout)

    async def start(self) -> None:
        """Do nothing: the first block opens the sandbox."""

    async def stop(self) -> None:
        """Close the sandbox."""
        await self._kernels.close()

    async def restart(self) -> None:
        """Go on in a new sandbox."""
        await self._kernels.close()

    async def execute_code_blocks(self, code_blocks: list[CodeBlock], cancellation_token: CancellationToken) -> CodeResult:
        """Run blocks until one fails. A block in a language that is not allowed is a ValueError, and nothing is run."""
        names = [_NAMES.get(block.language.lower(), block.language.lower()) or "python" for block in code_blocks]
        for name in names:
            if name not in self._languages:
                raise ValueError(f"code in {name} is not run here: use {' or '.join(self._languages)}")
        task = asyncio.ensure_future(self._execute(names, code_blocks))
        cancellation_token.link_future(task)
        return await task

    async def _execute(self, names: list[str], blocks: list[CodeBlock]) -> CodeResult:
        code = 0
        said: list[str] = []
        for name, block in zip(names, blocks, strict=True):
            code, text = await self._kernels.run(name, block.code)
            said.append(text)
            if code:
                break
        return CodeResult(code, "\n".join(said))
