"""Deep Agents: a backend whose shell and files are those of a sandbox.

    with llmsandbox.Sandbox("bash") as sandbox:
        agent = create_deep_agent(model=model, backend=SandboxBackend(sandbox))
"""

from __future__ import annotations

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

from llmsandbox._errors import APIError, InvalidError, SandboxFileExistsError, SandboxFileNotFoundError, SandboxPermissionError, TooLargeError
from llmsandbox._sync.sandbox import Sandbox

_REFUSED = (InvalidError, SandboxFileExistsError, SandboxFileNotFoundError, SandboxPermissionError, TooLargeError)


class SandboxBackend(BaseSandbox):
    """Runs an agent's commands and keeps its files in a sandbox, which stays yours to close.

    timeout: the longest that a command may take, in seconds, when the agent does not say.
    """

    def __init__(self, sandbox: Sandbox, *, timeout: int = 120) -> None:
        self._sandbox = sandbox
        self._timeout = timeout

    @property
    def id(self) -> str:
        """The id of the sandbox."""
        self._sandbox._opened()
        return self._sandbox.id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a shell command."""
        result = self._sandbox.exec(command, timeout=timeout or self._timeout)
        said = result.stdout + (f"\n<stderr>{result.stderr}</stderr>" if result.stderr else "")
        if result.reason:
            said += f"\n{result.reason}"
        return ExecuteResponse(said, result.exit_code, result.stdout_truncated or result.stderr_truncated)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write files. One that cannot be written has an error, and the others are written."""
        return [FileUploadResponse(path, self._write(path, content)) for path, content in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read files. One that cannot be read has an error."""
        return [self._read(path) for path in paths]

    def _write(self, path: str, content: bytes) -> str | None:
        try:
            self._sandbox.files.write(path, content)
        except _REFUSED as e:
            return _error(e)
        return None

    def _read(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path, self._sandbox.files.read(path))
        except _REFUSED as e:
            return FileDownloadResponse(path, error=_error(e))


def _error(error: APIError) -> str:
    if isinstance(error, SandboxFileNotFoundError):
        return "file_not_found"
    if isinstance(error, SandboxPermissionError):
        return "permission_denied"
    return str(error)
