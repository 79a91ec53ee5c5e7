"""Answers of a server that is none, from a peer that sends what a test says. They stand for hostile or broken servers."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

import pytest
from conftest import answer

import llmsandbox

Serve = Callable[..., str]

RESULT: dict[str, object] = {
    "status": "ok",
    "exit_code": 0,
    "stdout": "",
    "stderr": "",
    "stdout_truncated": False,
    "stderr_truncated": False,
    "duration_ms": 1,
    "artifacts": [],
}


@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        b"{",
        b"[" * 100_000,
        {},
        RESULT | {"status": ""},
        RESULT | {"exit_code": 1},
        RESULT | {"stdout": 1},
        RESULT | {"exit_code": True},
        RESULT | {"duration_ms": 10**400},
        RESULT | {"artifacts": [1]},
        RESULT | {"artifacts": [{"name": "a", "mime": "b", "data": "no base64!"}]},
    ],
)
def test_malformed(serve: Serve, body: object) -> None:
    with llmsandbox.Client(serve(answer(body))) as client, pytest.raises(llmsandbox.LostError, match="cannot be used"):
        llmsandbox.run("", client=client)


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}", b"SSH-2.0\r\n\r\n"])
def test_broken(serve: Serve, data: bytes) -> None:
    with llmsandbox.Client(serve(data)) as client, pytest.raises(llmsandbox.LostError, match="ended"):
        llmsandbox.run("", client=client)


def test_lost_run(serve: Serve) -> None:
    with llmsandbox.Client(serve(answer(RESULT | {"status": "lost", "exit_code": None, "reason": "gone"}))) as client:
        with pytest.raises(llmsandbox.LostError, match="gone") as caught:
            llmsandbox.run("", client=client)
    assert caught.value.result is not None and caught.value.result.status == "lost"


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        ("401 Unauthorized", "unauthorized", llmsandbox.AuthenticationError),
        ("403 Forbidden", "not_allowed", llmsandbox.NotAllowedError),
        ("404 Not Found", "not_found", llmsandbox.NotFoundError),
        ("403 Forbidden", "scope", llmsandbox.NotAllowedError),
        ("403 Forbidden", "permission", PermissionError),
        ("404 Not Found", "file_not_found", FileNotFoundError),
        ("404 Not Found", "", llmsandbox.APIError),
        ("409 Conflict", "exists", FileExistsError),
        ("413 Request Entity Too Large", "too_large", llmsandbox.TooLargeError),
        ("429 Too Many Requests", "rate", llmsandbox.BusyError),
        ("429 Too Many Requests", "quota", llmsandbox.QuotaError),
        ("502 Bad Gateway", "", llmsandbox.LostError),
        ("422 Unprocessable Entity", "unknown_language", ValueError),
        ("422 Unprocessable Entity", "install", llmsandbox.InstallError),
        ("500 Internal Server Error", "internal", llmsandbox.APIError),
        ("503 Service Unavailable", "lost", llmsandbox.LostError),
        ("418 I'm a teapot", "of a later version", llmsandbox.APIError),
    ],
)
def test_problems(serve: Serve, status: str, code: str, kind: type[Exception]) -> None:
    body = {
        "status": int(status[:3]),
        "code": code,
        "detail": "what\x1b[31m failed\nand why",
        "fields": [{"location": "body.x", "message": "no"}],
    }
    url = serve(answer(body, status, "application/problem+json"))
    with llmsandbox.Client(url) as client, pytest.raises(kind) as caught:
        llmsandbox.run("", client=client)
    assert type(caught.value) is kind or not issubclass(kind, llmsandbox.Error)
    assert isinstance(caught.value, llmsandbox.Error)
    assert str(caught.value) == "what [31m failed and why: body.x: no"
    if isinstance(caught.value, llmsandbox.APIError):
        assert (caught.value.status, caught.value.code) == (int(status[:3]), code)


def test_asks_again(serve: Serve) -> None:
    busy = answer({"code": "busy", "detail": "busy"}, "429 Too Many Requests", "application/problem+json", "Retry-After: 0\r\n")
    with llmsandbox.Client(serve(busy, busy, answer(RESULT))) as client:
        assert llmsandbox.run("", client=client).ok
    with llmsandbox.Client(serve(*[busy] * 5)) as client, pytest.raises(llmsandbox.BusyError):
        llmsandbox.run("", client=client)
    late = answer({"code": "quota", "detail": "spent"}, "429 Too Many Requests", "application/problem+json", "Retry-After: 3600\r\n")
    with llmsandbox.Client(serve(late)) as client, pytest.raises(llmsandbox.QuotaError, match="spent"):
        llmsandbox.run("", client=client)


def test_asks_a_private_server_again_and_again(serve: Serve) -> None:
    """Only its own process can have made it busy, whose programs queue."""
    busy = answer({"code": "busy", "detail": "busy"}, "429 Too Many Requests", "application/problem+json", "Retry-After: 0\r\n")
    with llmsandbox.Client(serve(*[busy] * 20, answer(RESULT))) as client:
        assert client._endpoint is not None
        client._endpoint = dataclasses.replace(client._endpoint, process=os.getpid())
        assert llmsandbox.run("", client=client).ok


def test_follows_no_redirect(serve: Serve) -> None:
    moved = answer(b"", "307 Temporary Redirect", more="Location: http://elsewhere.example.org/\r\n")
    with llmsandbox.Client(serve(moved), "secret-key") as client, pytest.raises(llmsandbox.APIError, match="redirects"):
        llmsandbox.run("", client=client)


def test_cut_stream(serve: Serve) -> None:
    opened = answer({"id": "sb-1"}, "201 Created")
    stream = answer(b'event: stdout\ndata: "x"\n\n', kind="text/event-stream")
    with llmsandbox.Client(serve(opened, stream)) as client:
        events = llmsandbox.Sandbox(client=client).stream("")
        assert next(events).text == "x"
        with pytest.raises(llmsandbox.LostError, match="too early"):
            next(events)


def test_hostile_id(serve: Serve) -> None:
    with (
        llmsandbox.Client(serve(answer({"id": "../keys"}, "201 Created"))) as client,
        pytest.raises(llmsandbox.LostError, match="not an id"),
    ):
        llmsandbox.Sandbox(client=client).run("")
    with llmsandbox.Client("http://127.0.0.1:1") as client, pytest.raises(llmsandbox.InvalidError, match="not an id"):
        llmsandbox.Sandbox.attach("../keys", client=client)
