# A server of a sandbox, which is not to be trusted: it tells what it was sent, and answers what it was asked for.
import base64, hashlib, http.server, json, urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def exact(self, n):
        return self.rfile.read(n)

    def echo(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.send_header("Set-Cookie", "a=b")
        self.send_header("X-Headers", json.dumps(self.headers.items()))
        self.end_headers()
        while True:
            head = self.exact(2)
            if len(head) < 2 or head[0] & 15 == 8:
                break
            size = head[1] & 127
            if size == 126:
                size = int.from_bytes(self.exact(2), "big")
            mask = self.exact(4)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(self.exact(size)))
            self.wfile.write(bytes([head[0], size]) + data if size < 126 else bytes([head[0], 126]) + size.to_bytes(2, "big") + data)
        self.close_connection = True

    def flood(self):
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        while True:
            self.wfile.write(b"x" * 65536)

    def do(self):
        url = urllib.parse.urlsplit(self.path)
        asked = dict(urllib.parse.parse_qsl(url.query))
        if self.headers.get("Upgrade") == "websocket":
            return self.echo()
        if url.path == "/raw":  # any bytes at all
            self.wfile.write(asked["raw"].encode("latin-1"))
            self.close_connection = True
            return
        if url.path == "/flood":
            return self.flood()
        if url.path == "/stream":  # piece by piece, each as it was sent
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while size := int(self.rfile.readline(), 16):
                piece = self.exact(size)
                self.rfile.readline()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.rfile.readline()
            self.wfile.write(b"0\r\nSet-Cookie: trailer=1\r\n\r\n")
            return
        body = self.exact(int(self.headers.get("Content-Length") or 0))
        text = json.dumps({"method": self.command, "path": self.path, "headers": self.headers.items(), "body": len(body)}).encode()
        self.send_response(int(asked.pop("status", "200")))
        for name, value in asked.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do


server = http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler)
print("listening", flush=True)
server.serve_forever()
