"""smolagents: an executor of the code of a CodeAgent.

    with SandboxExecutor() as executor:
        CodeAgent(tools=[], model=model, executor=executor).run("...")
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.utils import AgentExecutionError

from llmsandbox._sync.kernel import Kernel
from llmsandbox._sync.sandbox import Sandbox
from llmsandbox._tool import ToolLimits, output_of

if TYPE_CHECKING:
    from typing_extensions import Self


class SandboxExecutor(RemotePythonExecutor):
    """Runs the code of one agent, whose variables stay, in a sandbox that its first use opens.

    Tools of the agent run inside of the sandbox, too: their code is sent there. What the code returns as the final answer is
    read as JSON, and never unpickled.

    sandbox: what opens a sandbox of Python.
    additional_imports: libraries that are installed first.
    timeout: the longest that one piece of code may take, in seconds.
    """

    def __init__(
        self,
        sandbox: Callable[[], Sandbox] = Sandbox,
        *,
        additional_imports: list[str] | None = None,
        timeout: float | None = 60,
        logger: AgentLogger | None = None,
    ) -> None:
        super().__init__(additional_imports or [], AgentLogger() if logger is None else logger, allow_pickle=False)
        self._sandbox = sandbox()
        self._timeout = timeout
        self._kernel: Kernel | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.cleanup()

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        """Run code, and return its output or the final answer."""
        if self._kernel is None:
            # What smolagents sends for final_answer imports them.
            self.installed_packages += self.install_packages(["numpy", "pillow", *self.additional_imports])
            self._kernel = self._sandbox.kernel("python")
        cell = self._kernel.run(code, timeout=self._timeout)
        if cell.error is not None and cell.error.name == self.FINAL_ANSWER_EXCEPTION:
            return CodeOutput(self._deserialize_final_answer(cell.error.message), cell.stdout, is_final_answer=True)
        if not cell.ok:
            raise AgentExecutionError(output_of(cell, ToolLimits(images=0)).text, self.logger)
        return CodeOutput(cell.text, cell.stdout, is_final_answer=False)

    def install_packages(self, additional_imports: list[str]) -> list[str]:
        """Install libraries in the sandbox."""
        if additional_imports:
            self._sandbox.install(*additional_imports)
        return additional_imports

    def cleanup(self) -> None:
        """Close the sandbox. An agent does so at its end, too."""
        self._sandbox.close()
