"""Exceptions of the package, and which one an answer of the server is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmsandbox._results import Outcome


class Error(Exception):
    """The base class of all exceptions of this package."""


class StartError(Error):
    """The private server of this process could not be started."""


class ConnectError(Error, ConnectionError):
    """The server was not reached. Nothing was begun."""


class LostError(Error, ConnectionError):
    """The connection ended, or the answer cannot be used: what was asked for may have been done or not.

    `result` is what the server tells of a run that it has lost itself.
    """

    result: Outcome | None = None


class ClosedError(Error):
    """The sandbox or kernel was closed by this program, or belongs to another process."""


class APIError(Error):
    """The server refused the request, or failed.

    `status` is the HTTP status, and `code` tells programs what went wrong. The code is empty if something between this
    program and the server answered.
    """

    def __init__(self, message: str, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    def __reduce__(self) -> tuple[type[APIError], tuple[str, int, str]]:
        return type(self), (str(self), self.status, self.code)


class AuthenticationError(APIError):
    """The server does not accept the API key."""


class NotAllowedError(APIError):
    """The server's operator does not allow this."""


class NotFoundError(APIError):
    """The sandbox, kernel, program or volume does not exist or has ended, or nothing listens on the port."""


class InvalidError(APIError, ValueError):
    """An argument is invalid."""


class UnsupportedError(InvalidError):
    """The server cannot do this, or cannot enforce a limit that was set."""


class InstallError(APIError):
    """A library could not be installed."""


class RefusedError(APIError):
    """The server's policy refused the code or a library."""


class TooLargeError(InvalidError):
    """The request is too large, or what it asks for is larger than what was set."""


class BusyError(APIError):
    """The server is busy or does not serve at the moment. Nothing was begun; try again later."""


class QuotaError(BusyError):
    """The project has all that it may have. Nothing was begun."""


class PausedError(APIError):
    """The sandbox is paused: resume it first."""


class SandboxFileNotFoundError(APIError, FileNotFoundError):
    """The file does not exist in the sandbox."""


class SandboxFileExistsError(APIError, FileExistsError):
    """The file exists in the sandbox already."""


class SandboxPermissionError(APIError, PermissionError):
    """The sandbox's user may not do this to the file."""


# A code that is not here has the exception of its status.
_BY_CODE: dict[str, type[APIError]] = {
    "refused": RefusedError,
    "install": InstallError,
    "paused": PausedError,
    "quota": QuotaError,
    "stopping": BusyError,
    "not_ready": BusyError,
    "service_unavailable": BusyError,
    "unsupported": UnsupportedError,
    "not_enforced": UnsupportedError,
    "file_not_found": SandboxFileNotFoundError,
    "exists": SandboxFileExistsError,
    "permission": SandboxPermissionError,
}
_BY_STATUS: dict[int, type[APIError]] = {
    400: InvalidError,
    401: AuthenticationError,
    403: NotAllowedError,
    404: NotFoundError,
    413: TooLargeError,
    422: InvalidError,
    429: BusyError,
}


def api_error(status: int, code: str, detail: str) -> APIError | LostError:
    """Return the exception for an answer that is not a success."""
    text = printable(detail) or f"the server answers with status {status}"
    if code == "lost" or (code == "" and status in (502, 504)):
        return LostError(text)
    kind = APIError
    if code:  # without one, something between has answered
        kind = _BY_CODE.get(code) or _BY_STATUS.get(status, APIError)
    return kind(text, status, code)


def printable(text: str, most: int = 8192) -> str:
    """Return a text of the server on one line and without control characters, so that it is safe to print."""
    cut = text if len(text) <= most else text[:most] + " ..."
    return " ".join("".join(c if c.isprintable() else " " for c in cut).split())


for _kind in [value for value in vars().values() if isinstance(value, type) and issubclass(value, Error)]:
    _kind.__module__ = "llmsandbox"  # from where programs import them, for tracebacks
