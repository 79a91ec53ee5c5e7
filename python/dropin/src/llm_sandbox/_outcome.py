"""What became of code: its output while it runs, and the exit code and explanations for the caller."""

from __future__ import annotations

import contextlib
import re
import signal
from collections.abc import Callable, Generator
from contextlib import closing

import llmsandbox
from llmsandbox._results import Outcome

from llm_sandbox.data import StreamCallback


def deliver(
    events: Generator[llmsandbox.Event, None, None],
    on_stdout: StreamCallback | None,
    on_stderr: StreamCallback | None,
    decoded: Callable[[str], str],
) -> Outcome:
    """Call the callbacks with the output of code that runs, and return what became of it. It ends if a callback raises."""
    with closing(events):
        for event in events:
            if event.result is not None:
                return event.result
            callback = on_stdout if event.kind == "stdout" else on_stderr
            if callback is not None and (text := decoded(event.text)):
                callback(text)
    raise llmsandbox.LostError("the server's stream ended too early")


# As shells and the command llmsandbox have them.
_EXIT_CODES = {"ok": 0, "timeout": 124, "refused": 126, "out_of_memory": 137, "output_limit": 153}


def exit_code(result: Outcome) -> int:
    """Return the exit code. Code that did not end by itself has the one that a shell gives it."""
    if result.exit_code is not None and not (result.exit_code == 0 and not result.ok):
        return result.exit_code
    if result.status in _EXIT_CODES:
        return _EXIT_CODES[result.status]
    with contextlib.suppress(ValueError):
        return 128 + signal.Signals[result.signal].value if result.signal in signal.Signals.__members__ else 1
    return 1


def explanation(result: Outcome, network: object) -> str:
    """Return lines for the standard error about what code itself does not say."""
    lines: list[str] = []
    if not result.ok and result.reason:
        lines.append(result.reason)
    refused = {f"{a.host}:{a.port}" for a in result.network if not a.allowed}
    if refused:
        hosts = ", ".join(sorted(refused)[:5])
        how = "" if network == "full" else "; network='full' or network=[HOST, ...] of the session allows it"
        lines.append(f"the sandbox did not let code reach {hosts}{how}")
    elif not result.ok and network in (None, "", "none") and _NETWORK_ERROR.search(result.stderr):
        lines.append("the sandbox has no network; network='full' or network=[HOST, ...] of the session gives it one")
    return "".join(f"llm_sandbox: {line}\n" for line in lines)


_NETWORK_ERROR = re.compile(
    r"Name or service not known|Temporary failure in name resolution|Network is unreachable|EAI_AGAIN|ENETUNREACH"
    r"|[Cc]ould not resolve host|UnknownHostException|no such host|getaddrinfo"
)
