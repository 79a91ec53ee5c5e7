"""Where a server is, and the key with which it is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from llmsandbox._errors import InvalidError


@dataclass(frozen=True)
class Endpoint:
    """The address of a server. With a `socket`, it is that path in the file system in place of host and port."""

    host: str
    port: int = 0
    tls: bool = False
    socket: str = ""
    prefix: str = ""  # of all paths
    key: str = field(default="", repr=False)
    process: int = 0  # whose private server it is; 0: it is not private

    def __str__(self) -> str:
        if self.socket:
            return f"unix:{self.socket}"
        return f"{'https' if self.tls else 'http'}://{self._authority}{self.prefix}"

    @property
    def _authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    def headers(self) -> dict[str, str]:
        """Return the headers that all requests to this server have."""
        headers = {"Host": "localhost" if self.socket else self._authority, "User-Agent": "llmsandbox-python"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        return headers


def parse(url: str, key: str) -> Endpoint:
    """Return the endpoint of a URL such as https://sandboxes.example.org or unix:/run/llmsandbox.sock."""
    if any(not "!" <= c <= "~" for c in key):
        raise InvalidError("the API key has spaces, line breaks or other characters that no key has")
    if url.startswith("unix:"):
        path = url.removeprefix("unix:")
        if not path.startswith("/"):
            raise InvalidError("the server's URL: unix: must be followed by an absolute path")
        return Endpoint(host="localhost", socket=path, key=key)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = None, None, None  # the error would show the URL, which may have a password in it
    if parts is None or parts.scheme not in ("http", "https") or not host or not host.isascii():
        raise InvalidError("the server's URL: use https://HOST[:PORT], unix:PATH, or http:// on the loopback")
    if parts.username is not None or parts.query or parts.fragment or not url.isascii() or any(c in url for c in " \t\r\n"):
        raise InvalidError("the server's URL has a user, a query, a fragment or spaces: leave them out; the key is an argument of its own")
    tls = parts.scheme == "https"
    return Endpoint(host, port or (443 if tls else 80), tls, prefix=parts.path.rstrip("/"), key=key)
