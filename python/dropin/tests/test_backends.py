"""The registry of backends, and the helper for clients of Kubernetes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from llm_sandbox import backends
from llm_sandbox.backends import BackendCapabilities, get_backend, list_backends, register_backend
from llm_sandbox.exceptions import UnsupportedBackendError
from llm_sandbox.k8s_utils import retry_k8s_api_call


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(backends, "_backends", dict(backends._backends))
    yield


def never(*_: Any, **__: Any) -> None:
    raise AssertionError("the factory was called")


def test_builtin_backends() -> None:
    names = ["docker", "kubernetes", "podman", "micromamba", "bubblewrap", "nsjail", "windows-mxc", "wsl2-bubblewrap"]
    assert [backend.name for backend in list_backends()] == names
    assert all(backend.builtin for backend in list_backends())
    pooling = [backend.name for backend in list_backends() if backend.capabilities.pooling]
    assert pooling == ["docker", "kubernetes", "podman"]


@pytest.mark.parametrize("name", ["nothing", "", "1st", "a b", None, 7])
def test_unknown_names(name: Any) -> None:
    with pytest.raises(UnsupportedBackendError, match=f"^Unsupported backend: {name}$"):
        get_backend(name)


def test_register() -> None:
    made = register_backend("My_Own-1", never, capabilities=BackendCapabilities(platforms=["linux"]))  # type: ignore[arg-type]  # pyright: ignore
    assert made.name == "my_own-1" and not made.builtin and made.capabilities.platforms == ("linux",)
    assert get_backend("MY_OWN-1") is made and list_backends()[-1] is made


@pytest.mark.parametrize(
    ("name", "factory", "capabilities", "error", "message"),
    [
        ("Docker", never, None, ValueError, "Backend 'docker' is already registered"),
        ("own backend", never, None, ValueError, "Backend names must start with a letter"),
        (7, never, None, TypeError, "Backend names must be strings"),
        ("own", "factory", None, TypeError, "must be callable"),
        ("own", never, {"pooling": True}, TypeError, "must be a BackendCapabilities"),
    ],
)
def test_register_refuses(name: Any, factory: Any, capabilities: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        register_backend(name, factory, capabilities=capabilities)
    assert len(list_backends()) == 8


class CallError(Exception):
    def __init__(self, status: int, reason: str) -> None:
        self.status, self.reason = status, reason


def test_calls_of_kubernetes_are_repeated_if_no_stream_began(caplog: pytest.LogCaptureFixture) -> None:
    failures = [CallError(0, "Handshake status 500"), CallError(0, "Handshake status 500")]

    def call(name: str, *, namespace: str) -> str:
        if failures:
            raise failures.pop()
        return f"{namespace}/{name}"

    with caplog.at_level(logging.WARNING):
        assert retry_k8s_api_call(call, "pod", namespace="default", retry_delay=0) == "default/pod"
    assert len(caplog.records) == 2


@pytest.mark.parametrize("failure", [CallError(404, "Not Found"), CallError(0, "refused"), ValueError("wrong")])
def test_other_calls_of_kubernetes_are_made_once(failure: Exception) -> None:
    calls: list[int] = []

    def call() -> None:
        calls.append(1)
        raise failure

    with pytest.raises(type(failure)):
        retry_k8s_api_call(call, retry_delay=0)
    assert len(calls) == 1
