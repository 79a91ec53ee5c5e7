"""Servers inside sandboxes: their ports, requests to them, and addresses for others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from conftest import Server, answer

import llmsandbox
from llmsandbox import Client, Sandbox

ECHO = """
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        said = {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body.decode()}
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(said).encode())
    def do_GET(self):  # answers as the API would
        data = b'{"code": "not_found", "status": 404, "detail": "not the API"}'
        self.send_response(404)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 8000), Handler)
print("listens", flush=True)
server.serve_forever()
"""


def listen(sandbox: Sandbox) -> None:
    come = ""
    for event in sandbox.start_run(ECHO).stream():
        come += event.text
        if "listens" in come:
            return
    raise AssertionError(come)


def test_requests(sandbox: Sandbox) -> None:
    with pytest.raises(llmsandbox.NotFoundError, match="nothing listens on port 8000"):
        sandbox.request(8000)
    listen(sandbox)
    assert sandbox.ports() == [llmsandbox.Port(8000, "127.0.0.1")]
    answered = sandbox.request(8000, "/a b/é", method="POST", query={"x": "1 2"}, headers={"X-Mine": "yes"}, content=b"body")
    assert (answered.status, answered.headers["content-type"]) == (201, "application/json")
    said = json.loads(answered.text)
    assert (said["path"], said["body"], said["headers"]["x-mine"]) == ("/a%20b/%C3%A9?x=1%202", "body", "yes")
    assert "authorization" not in said["headers"]
    # What is inside cannot speak as the API does.
    assert sandbox.request(8000).status == 404
    assert sandbox.url(8000, "/x").endswith(f"/v1/sandboxes/{sandbox.id}/ports/8000/x")


def test_errors(sandbox: Sandbox) -> None:
    for port in (0, 65536, True):
        with pytest.raises(llmsandbox.InvalidError, match="port"):
            sandbox.request(port)
    with pytest.raises(llmsandbox.InvalidError, match="slash"):
        sandbox.request(8000, "x")
    with pytest.raises(llmsandbox.InvalidError, match="method"):
        sandbox.request(8000, method="GET / HTTP/1.1\r\n")
    for name, value in {"authorization": "x", "Host": "x", "A B": "x", "X": "a\r\nb", "Y": "é"}.items():
        with pytest.raises(llmsandbox.InvalidError, match="header"):
            sandbox.request(8000, headers={name: value})
    with pytest.raises(llmsandbox.APIError, match="ports-domain|domain"):
        sandbox.share(8000)


def test_share(new_server: type[Server]) -> None:
    server = new_server("--warm", "0", "--ports-domain", "ports.localhost")
    with server.client() as client, Sandbox(client=client) as sandbox:
        listen(sandbox)
        shared = sandbox.share(8000, 600)
        address = urlsplit(shared.url)
        assert address.netloc.startswith(f"8000-{sandbox.id}.ports.localhost") and shared.expires.utcoffset() is not None
        connection = HTTPConnection(urlsplit(server.url).netloc)
        connection.request("GET", f"{address.path}?{address.query}", headers={"Host": address.netloc})
        with connection.getresponse() as answered:
            assert answered.status in (302, 303) and "llmsandbox-share" in (answered.getheader("Set-Cookie") or "")
        connection.close()


def test_unix_socket_has_no_url() -> None:
    with Sandbox() as sandbox, pytest.raises(llmsandbox.InvalidError, match="Unix socket"):
        sandbox.url(8000)


def test_asyncio(server: Server) -> None:
    async def main() -> None:
        async with server.async_client() as client, llmsandbox.AsyncSandbox(client=client) as sandbox:
            process = await sandbox.start_run(ECHO)
            async for event in process.stream():
                if "listens" in event.text:
                    break
            assert (await sandbox.request(8000, method="POST")).status == 201

    asyncio.run(main(), debug=True)


def test_malformed_share(serve: Callable[..., str]) -> None:
    share = answer({"url": "javascript:alert(1)", "expires": "2026-01-01T00:00:00Z"}, "201 Created")
    with Client(serve(answer({"id": "sb-1"}, "201 Created"), share)) as client:
        with pytest.raises(llmsandbox.LostError, match="no URL"):
            Sandbox(client=client).share(8000)
