"""The backend windows-mxc, which exists by name."""

from __future__ import annotations

from typing import Any

from llm_sandbox.exceptions import MissingDependencyError
from llm_sandbox.local.session import LocalProcessSession


class WindowsMxcSession(LocalProcessSession):
    """A session of Windows' own sandboxes, which there are none of here."""

    def __init__(self, **kwargs: Any) -> None:
        raise MissingDependencyError(
            "The windows-mxc backend requires Windows, and its sandboxes are not those of this package: "
            "use a container engine (backend='docker' or 'podman'), or LLMSANDBOX_URL for a server on Linux"
        )
