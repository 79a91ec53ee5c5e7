"""Run code of language models without trusting it.

    import llmsandbox

    print(llmsandbox.run("print(6 * 7)").stdout)

    with llmsandbox.Sandbox() as sandbox:
        sandbox.files.write("data.csv", "a,b\\n1,2\\n")
        print(sandbox.run("print(open('data.csv').read())").stdout)

Code runs in a private server of this process, unless LLMSANDBOX_URL names another one. `Client` has more on that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmsandbox._async.client import AsyncClient as AsyncClient
    from llmsandbox._async.client import run_async as run_async
    from llmsandbox._async.files import AsyncFiles as AsyncFiles
    from llmsandbox._async.kernel import AsyncKernel as AsyncKernel
    from llmsandbox._async.pool import AsyncPool as AsyncPool
    from llmsandbox._async.process import AsyncProcess as AsyncProcess
    from llmsandbox._async.sandbox import AsyncSandbox as AsyncSandbox
    from llmsandbox._async.terminal import AsyncTerminal as AsyncTerminal
    from llmsandbox._async.tool import AsyncCodeTool as AsyncCodeTool
    from llmsandbox._async.volumes import AsyncVolumes as AsyncVolumes
    from llmsandbox._describe import Completion as Completion
    from llmsandbox._describe import Copied as Copied
    from llmsandbox._describe import FileInfo as FileInfo
    from llmsandbox._describe import PoolInfo as PoolInfo
    from llmsandbox._describe import Port as Port
    from llmsandbox._describe import ProcessInfo as ProcessInfo
    from llmsandbox._describe import Response as Response
    from llmsandbox._describe import SandboxInfo as SandboxInfo
    from llmsandbox._describe import Secret as Secret
    from llmsandbox._describe import Share as Share
    from llmsandbox._describe import Variable as Variable
    from llmsandbox._describe import Volume as Volume
    from llmsandbox._describe import VolumeMount as VolumeMount
    from llmsandbox._errors import APIError as APIError
    from llmsandbox._errors import AuthenticationError as AuthenticationError
    from llmsandbox._errors import BusyError as BusyError
    from llmsandbox._errors import ClosedError as ClosedError
    from llmsandbox._errors import ConnectError as ConnectError
    from llmsandbox._errors import Error as Error
    from llmsandbox._errors import InstallError as InstallError
    from llmsandbox._errors import InvalidError as InvalidError
    from llmsandbox._errors import LostError as LostError
    from llmsandbox._errors import NotAllowedError as NotAllowedError
    from llmsandbox._errors import NotFoundError as NotFoundError
    from llmsandbox._errors import PausedError as PausedError
    from llmsandbox._errors import QuotaError as QuotaError
    from llmsandbox._errors import RefusedError as RefusedError
    from llmsandbox._errors import SandboxFileExistsError as SandboxFileExistsError
    from llmsandbox._errors import SandboxFileNotFoundError as SandboxFileNotFoundError
    from llmsandbox._errors import SandboxPermissionError as SandboxPermissionError
    from llmsandbox._errors import StartError as StartError
    from llmsandbox._errors import TooLargeError as TooLargeError
    from llmsandbox._errors import UnsupportedError as UnsupportedError
    from llmsandbox._results import Artifact as Artifact
    from llmsandbox._results import Axes as Axes
    from llmsandbox._results import Axis as Axis
    from llmsandbox._results import Cell as Cell
    from llmsandbox._results import CellError as CellError
    from llmsandbox._results import Chart as Chart
    from llmsandbox._results import Event as Event
    from llmsandbox._results import Finding as Finding
    from llmsandbox._results import Form as Form
    from llmsandbox._results import Hint as Hint
    from llmsandbox._results import NetworkAttempt as NetworkAttempt
    from llmsandbox._results import Result as Result
    from llmsandbox._results import Series as Series
    from llmsandbox._sync.client import Client as Client
    from llmsandbox._sync.client import run as run
    from llmsandbox._sync.files import Files as Files
    from llmsandbox._sync.kernel import Kernel as Kernel
    from llmsandbox._sync.pool import Pool as Pool
    from llmsandbox._sync.process import Process as Process
    from llmsandbox._sync.sandbox import Sandbox as Sandbox
    from llmsandbox._sync.terminal import Terminal as Terminal
    from llmsandbox._sync.tool import CodeTool as CodeTool
    from llmsandbox._sync.volumes import Volumes as Volumes
    from llmsandbox._tool import ToolLimits as ToolLimits
    from llmsandbox._tool import ToolOutput as ToolOutput

# Loaded when they are first used: an import of this package must cost a program next to nothing.
_MODULES = {
    "_async.client": ("AsyncClient", "run_async"),
    "_async.files": ("AsyncFiles",),
    "_async.kernel": ("AsyncKernel",),
    "_async.pool": ("AsyncPool",),
    "_async.process": ("AsyncProcess",),
    "_async.sandbox": ("AsyncSandbox",),
    "_async.terminal": ("AsyncTerminal",),
    "_async.tool": ("AsyncCodeTool",),
    "_async.volumes": ("AsyncVolumes",),
    "_describe": (
        "Completion",
        "Copied",
        "FileInfo",
        "PoolInfo",
        "Port",
        "ProcessInfo",
        "Response",
        "SandboxInfo",
        "Secret",
        "Share",
        "Variable",
        "Volume",
        "VolumeMount",
    ),
    "_errors": (
        "APIError",
        "AuthenticationError",
        "BusyError",
        "ClosedError",
        "ConnectError",
        "Error",
        "InstallError",
        "InvalidError",
        "LostError",
        "NotAllowedError",
        "NotFoundError",
        "PausedError",
        "QuotaError",
        "RefusedError",
        "SandboxFileExistsError",
        "SandboxFileNotFoundError",
        "SandboxPermissionError",
        "StartError",
        "TooLargeError",
        "UnsupportedError",
    ),
    "_results": (
        "Artifact",
        "Axes",
        "Axis",
        "Cell",
        "CellError",
        "Chart",
        "Event",
        "Finding",
        "Form",
        "Hint",
        "NetworkAttempt",
        "Result",
        "Series",
    ),
    "_sync.client": ("Client", "run"),
    "_sync.files": ("Files",),
    "_sync.kernel": ("Kernel",),
    "_sync.pool": ("Pool",),
    "_sync.process": ("Process",),
    "_sync.sandbox": ("Sandbox",),
    "_sync.terminal": ("Terminal",),
    "_sync.tool": ("CodeTool",),
    "_sync.volumes": ("Volumes",),
    "_tool": ("ToolLimits", "ToolOutput"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # for which a name that does not exist would be an object
    __all__ = sorted(_HOME)

    def __getattr__(name: str) -> object:
        module = _HOME.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value: object = getattr(import_module(f"{__name__}.{module}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
