"""The decoders of answers, without a server."""

from __future__ import annotations

import random

import pytest

from llmsandbox._events import EventDecoder, ServerEvent
from llmsandbox._http import MAX_HEAD, Decoder, ProtocolError, encode_head
from llmsandbox._json import MalformedError

ANSWERS = {
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello": (200, b"hello", True),
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n": (200, b"", True),
    b"HTTP/1.1 204 No Content\r\n\r\n": (204, b"", True),
    b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 5\r\n\r\nhello": (200, b"hello", False),
    b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello": (200, b"hello", False),
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\ncontent-length: 1\r\n\r\nx": (404, b"x", True),
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n": (
        200,
        b"abc0123456789",
        True,
    ),
    b"HTTP/1.1 200 OK\n\nuntil the end": (200, b"until the end", False),
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n": (200, b"ok", False),
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_answers(answer: bytes, size: int) -> None:
    decoder = Decoder()
    body = b"".join(decoder.feed(answer[at : at + size]) for at in range(0, len(answer), size))
    if not decoder.done:
        body += decoder.feed(b"")
    status, content, keep_alive = ANSWERS[answer]
    assert (decoder.status, body, decoder.done) == (status, content, True)
    assert decoder.keep_alive == keep_alive or size < len(answer)  # what follows comes later


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 099 Low\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nName : value\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"0" * 2000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * MAX_HEAD,
        b"HTTP/1.1 200 OK\r\nName: " + b"x" * MAX_HEAD,
    ],
)
def test_malformed_answers(answer: bytes) -> None:
    with pytest.raises(ProtocolError):
        Decoder().feed(answer)


def test_mutated_answers() -> None:
    """Whatever comes, in whatever pieces, is decoded alike or refused."""
    chance = random.Random(1)

    def decoded(data: bytes, size: int) -> tuple[int, bytes] | None:
        decoder = Decoder()
        try:
            body = b"".join(decoder.feed(data[at : at + size]) for at in range(0, len(data), size) if not decoder.done)
            if not decoder.done:
                body += decoder.feed(b"")
        except ProtocolError:
            return None
        return decoder.status, body

    refused: set[bool] = set()
    for answer in [*ANSWERS] * 200:
        data = bytearray(answer)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.choice(b"\r\n\0 :;,09aF\xff")
        whole = decoded(bytes(data), len(data))
        assert decoded(bytes(data), chance.randrange(1, 9)) == whole
        refused.add(whole is None)
    assert refused == {True, False}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
    ],
)
def test_cut_answers(answer: bytes) -> None:
    decoder = Decoder()
    if answer:
        decoder.feed(answer)
    with pytest.raises(ProtocolError, match="too early"):
        decoder.feed(b"")


def test_head_has_no_line_breaks() -> None:
    with pytest.raises(ValueError, match="line break"):
        encode_head("GET", "/", {"X": "a\r\nB: c"})


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_events(size: int) -> None:
    stream = b':\n\nevent: stdout\ndata: "a"\n\nid: 1\nevent: result\r\ndata: {}\r\n\r\ndata: unnamed\n\nevent: cut\ndata: "x"\n'
    decoder = EventDecoder(100)
    events = [event for at in range(0, len(stream), size) for event in decoder.feed(stream[at : at + size])]
    assert events == [ServerEvent("stdout", b'"a"'), ServerEvent("result", b"{}", "1")]


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 200, b"data: xxxxxxxxxx\n" * 20])
def test_long_events(stream: bytes) -> None:
    with pytest.raises(MalformedError, match="more than 100 bytes"):
        EventDecoder(100).feed(stream)
