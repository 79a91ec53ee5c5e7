"""Servers in sandboxes of the Python SDKs, reached by get_host."""

import base64
import hashlib
import http.client
import os
import socket
import time

from e2b import Sandbox
from e2b_code_interpreter import Sandbox as Interpreter

# It answers with the Host that it is asked for; as a WebSocket, it sends back what comes.
SERVER = """
import base64, hashlib, http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        key = self.headers["Sec-WebSocket-Key"]
        if key is None:
            text = "\\n".join(f"{k}: {v}" for k, v in self.headers.items()).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            return
        accept = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        self.wfile.write(b"HTTP/1.1 101 x\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: " + base64.b64encode(accept) + b"\\r\\n\\r\\n")
        while data := self.rfile.read1(100):
            self.wfile.write(data)
        self.close_connection = True
http.server.ThreadingHTTPServer(("127.0.0.1", 9000), Handler).serve_forever()
"""


def ask(host, path="/", **headers):
    """Asks for a host below the server's domain, which nothing resolves here, on the server's port."""
    name, port = host.split(":")
    assert name.endswith(".ports.example.org"), host
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
    connection.request("GET", path, headers={"Host": host, **{k.replace("_", "-"): v for k, v in headers.items()}})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def listening(host, **headers):
    """Waits until something listens there, and returns its answer."""
    end = time.monotonic() + 60
    while True:
        status, text = ask(host, **headers)
        if status != 502 or time.monotonic() > end:
            return status, text
        assert "port is not open" in text, text


def public():
    with Sandbox.create(timeout=120) as sb:
        sb.files.write("page/index.html", "<p>hello")
        host = sb.get_host(8000)
        status, text = ask(host)
        assert status == 502 and "The sandbox is running but port is not open" in text, (status, text)
        served = sb.commands.run("python3 -m http.server 8000 --bind 127.0.0.1 --directory page", background=True)
        assert listening(host) == (200, "<p>hello")
        assert ask(host, "/none")[0] == 404
        assert Sandbox.connect(sb.sandbox_id).get_host(8000) == host
        assert sb.traffic_access_token is None
        served.kill()
        status, text = ask(host)
        assert status == 502 and "port is not open" in text, (status, text)

        sb.files.write("server.py", SERVER)
        sb.commands.run("python3 server.py", background=True)
        host = sb.get_host(9000)
        status, text = listening(host)
        assert status == 200 and f"Host: {host}" in text, (status, text)
        key = base64.b64encode(os.urandom(16)).decode()
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        with socket.create_connection(("127.0.0.1", int(host.split(":")[1])), timeout=60) as ws:
            ws.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
            stream = ws.makefile("rb")
            assert stream.readline().startswith(b"HTTP/1.1 101"), "it is no WebSocket"
            head = b"".join(iter(stream.readline, b"\r\n")).decode()
            assert accept in head, head
            ws.sendall(b"\x81\x85\0\0\0\0hello")
            assert stream.read(11) == b"\x81\x85\0\0\0\0hello"
    status, text = ask(host)
    assert status == 502 and "The sandbox was not found" in text, (status, text)


def private():
    network = {"allow_public_traffic": False, "mask_request_host": "localhost:${PORT}"}
    with Sandbox.create(timeout=120, network=network) as sb, Sandbox.create(timeout=120, network=network) as other:
        sb.files.write("server.py", SERVER)
        sb.commands.run("python3 server.py", background=True)
        host, token = sb.get_host(9000), sb.traffic_access_token
        assert Sandbox.connect(sb.sandbox_id).traffic_access_token == token != other.traffic_access_token
        status, text = listening(host, e2b_traffic_access_token=token)
        assert status == 200 and "Host: localhost:9000" in text and f"X-Forwarded-Host: {host}" in text and token not in text, (status, text)
        for wrong in ({}, {"e2b_traffic_access_token": "x"}, {"e2b_traffic_access_token": other.traffic_access_token}, {"X_API_KEY": os.environ["E2B_API_KEY"]}):
            assert ask(host, **wrong)[0] == 403, wrong
            assert ask(sb.get_host(1), **wrong)[0] == 403, wrong
    with Interpreter.create(timeout=120, network=network) as sb:
        context = sb.create_code_context()
        assert sb.run_code("1 + 1", context=context).text == "2"
        assert ask(sb.get_host(49999), "/contexts")[0] == 403


if __name__ == "__main__":
    public()
    private()
    os._exit(0)  # as sdk.py does
