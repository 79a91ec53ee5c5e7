"""WebSockets (RFC 6455) without input and output: the handshake, and messages as frames.

Nothing is negotiated but the protocol inside. What a server sends otherwise than it must is an error.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass

from llmsandbox._http import ProtocolError

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MAX_CONTROL = 125

_ACCEPTS = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@dataclass(frozen=True)
class Message:
    """What a server sends at once. `kind` is TEXT, BINARY, CLOSE, PING or PONG."""

    kind: int
    data: bytes


def new_key() -> str:
    """Return what a client's handshake has as its key."""
    return base64.b64encode(os.urandom(16)).decode("ascii")


def request_headers(key: str, protocol: str) -> dict[str, str]:
    """Return the headers of a handshake."""
    return {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Protocol": protocol,
    }


def check_answer(headers: Mapping[str, str], key: str, protocol: str) -> None:
    """Fail with ProtocolError unless a server has agreed to a handshake, and to nothing else."""
    accepted = base64.b64encode(hashlib.sha1((key + _ACCEPTS).encode("ascii"), usedforsecurity=False).digest()).decode("ascii")
    options = [option.strip().lower() for option in headers.get("connection", "").split(",")]
    if headers.get("upgrade", "").lower() != "websocket" or "upgrade" not in options or headers.get("sec-websocket-accept") != accepted:
        raise ProtocolError("the server does not answer as one of WebSockets")
    if headers.get("sec-websocket-protocol") != protocol or "sec-websocket-extensions" in headers:
        raise ProtocolError("the server has agreed to another protocol than was asked for")


def encode(kind: int, data: bytes) -> bytes:
    """Return a message as a frame of a client, which is masked."""
    size = len(data)
    if size <= MAX_CONTROL:
        head = bytes((0x80 | kind, 0x80 | size))
    elif size < 1 << 16:
        head = bytes((0x80 | kind, 0x80 | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | kind, 0x80 | 127)) + size.to_bytes(8, "big")
    mask = os.urandom(4)
    stream = (mask * (size // 4 + 1))[:size]
    return head + mask + (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(size, "big")


class Decoder:
    """Decodes what a server sends, as it comes in pieces of any size. No message may be longer than most bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._buffer = bytearray()
        self._kind = 0  # of the message that has begun
        self._message = bytearray()
        self._closed = False

    def feed(self, data: bytes) -> list[Message]:
        """Take what has come and return the messages that end in it. None comes after CLOSE."""
        self._buffer += data
        messages: list[Message] = []
        while not self._closed and self._frame(messages):
            pass
        if self._closed:
            self._buffer.clear()
        return messages

    def _frame(self, messages: list[Message]) -> bool:
        if len(self._buffer) < 2:
            return False
        first, second = self._buffer[:2]
        final, kind, size, at = bool(first & 0x80), first & 0x0F, second & 0x7F, 2
        if first & 0x70:
            raise ProtocolError("a frame has bits of an extension")
        if second & 0x80:
            raise ProtocolError("a frame of the server is masked")
        if kind not in (0, TEXT, BINARY, CLOSE, PING, PONG):
            raise ProtocolError("a frame is of an unknown kind")
        if kind >= CLOSE and (size > MAX_CONTROL or not final):
            raise ProtocolError("a control frame is too long or in parts")
        if kind < CLOSE and (kind == 0) != (self._kind != 0):
            raise ProtocolError("a frame is not where it belongs in a message")
        if size >= 126:
            at = 4 if size == 126 else 10
            if len(self._buffer) < at:
                return False
            least = 126 if size == 126 else 1 << 16
            size = int.from_bytes(self._buffer[2:at], "big")
            if size < least:
                raise ProtocolError("the length of a frame is not in its shortest form")
        if kind < CLOSE and len(self._message) + size > self._most:
            raise ProtocolError(f"a message has more than {self._most} bytes")
        if len(self._buffer) < at + size:
            return False
        data = bytes(self._buffer[at : at + size])
        del self._buffer[: at + size]
        if kind >= CLOSE:
            self._control(kind, data, messages)
            return True
        self._kind = kind or self._kind
        self._message += data
        if final:
            messages.append(Message(self._kind, _checked(self._kind, bytes(self._message))))
            self._kind, self._message = 0, bytearray()
        return True

    def _control(self, kind: int, data: bytes, messages: list[Message]) -> None:
        if kind == CLOSE:
            code = int.from_bytes(data[:2], "big")
            if len(data) == 1 or (data and (not 1000 <= code < 5000 or code in (1004, 1005, 1006, 1015))):
                raise ProtocolError("the code of a close is malformed")
            _checked(TEXT, data[2:])
            self._closed = True
        messages.append(Message(kind, data))


def _checked(kind: int, data: bytes) -> bytes:
    if kind == TEXT:
        try:
            data.decode()
        except UnicodeDecodeError:
            raise ProtocolError("a text is not in UTF-8") from None
    return data
