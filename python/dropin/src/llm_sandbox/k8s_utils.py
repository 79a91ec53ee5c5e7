"""Calls of the Python client of Kubernetes. Sessions do not need that client; programs that have one may use this."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

K8S_API_MAX_RETRIES = 3
K8S_API_RETRY_DELAY = 0.5

_one_at_a_time = threading.Lock()  # the client can make one call at a time
T = TypeVar("T")


def retry_k8s_api_call(
    func: Callable[..., T],
    *args: Any,
    max_retries: int = K8S_API_MAX_RETRIES,
    retry_delay: float = K8S_API_RETRY_DELAY,
    logger: logging.Logger | None = None,
    **kwargs: Any,
) -> T:
    """Call a function of the client, again if the server did not take up a stream, and return what it returns.

    A call that reached the server is made once, whatever came of it.
    """
    logger = logger or logging.getLogger(__name__)
    for attempt in range(1, max_retries + 1):
        try:
            with _one_at_a_time:
                return func(*args, **kwargs)
        except Exception as error:
            reason = str(getattr(error, "reason", ""))
            if getattr(error, "status", None) != 0 or "Handshake status" not in reason or attempt == max_retries:
                raise
            delay = retry_delay * 2 ** (attempt - 1)
            logger.warning("Call %d of %d failed; the next is in %.2fs: %s", attempt, max_retries, delay, reason[:100])
            time.sleep(delay)
    raise ValueError(f"max_retries is {max_retries}: use at least 1")
