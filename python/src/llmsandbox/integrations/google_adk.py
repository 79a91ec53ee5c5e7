"""Google's Agent Development Kit: an executor of the code that an agent writes.

    agent = LlmAgent(name="analyst", model=model, code_executor=SandboxCodeExecutor())
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.adk.agents.invocation_context import InvocationContext
from google.adk.code_executors import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult, File
from pydantic import PrivateAttr

from llmsandbox._errors import InvalidError
from llmsandbox._sync.sandbox import Sandbox
from llmsandbox._sync.tool import CodeTool
from llmsandbox.integrations._images import encoded


class SandboxCodeExecutor(BaseCodeExecutor):
    """Runs an agent's code. Each session of ADK has a sandbox of its own, whose variables stay.

    sandbox: what opens a sandbox of Python.
    timeout: the longest that one piece of code may take, in seconds.
    """

    stateful: bool = True
    _code: CodeTool = PrivateAttr()

    def __init__(self, sandbox: Callable[[], Sandbox] = Sandbox, *, timeout: float | None = 60, **settings: Any) -> None:
        super().__init__(**settings)
        if self.optimize_data_file:
            raise InvalidError("optimize_data_file is not supported: write files to the sandbox")
        self._code = CodeTool(sandbox, timeout=timeout)

    def execute_code(self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput) -> CodeExecutionResult:
        """Run code in the sandbox of a session."""
        output = self._code.run(code_execution_input.code, conversation=invocation_context.session.id)
        images = [File(image.name, encoded(image), image.mime) for image in output.images]
        if output.is_error:
            return CodeExecutionResult(stderr=output.text, output_files=images)
        return CodeExecutionResult(stdout=output.text, output_files=images)

    def close(self) -> None:
        """Close the sandboxes of all sessions."""
        self._code.close()
