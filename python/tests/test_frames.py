"""WebSockets: the handshake and the decoder of frames, without a server."""

from __future__ import annotations

import random

import pytest

from llmsandbox._frames import BINARY, CLOSE, PING, TEXT, Decoder, Message, check_answer, encode, new_key, request_headers
from llmsandbox._http import ProtocolError

STREAM = b"".join(
    [
        b"\x81\x02hi",
        b"\x01\x02\xc3\xa9\x89\x01p\x80\x01!",  # in two parts, with a ping between
        b"\x82\x00",
        b"\x82\x7e\x00\x80" + b"x" * 128,
        b"\x02\x01\xff\x00\x01\xfe\x80\x00",
        b"\x88\x05\x03\xe8bye",
        b"\x82\x01x",  # after the end
    ]
)
MESSAGES = [
    Message(TEXT, b"hi"),
    Message(PING, b"p"),
    Message(TEXT, "é!".encode()),
    Message(BINARY, b""),
    Message(BINARY, b"x" * 128),
    Message(BINARY, b"\xff\xfe"),
    Message(CLOSE, b"\x03\xe8bye"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_frames(size: int) -> None:
    decoder = Decoder(1000)
    assert [m for at in range(0, len(STREAM), size) for m in decoder.feed(STREAM[at : at + size])] == MESSAGES


@pytest.mark.parametrize(
    ("frames", "why"),
    [
        (b"\xc1\x00", "extension"),
        (b"\x81\x80\0\0\0\0", "masked"),
        (b"\x83\x00", "unknown"),
        (b"\x8b\x00", "unknown"),
        (b"\x09\x00", "control"),
        (b"\x89\x7e\x00\x7e", "control"),
        (b"\x80\x00", "belongs"),
        (b"\x01\x00\x01\x00", "belongs"),
        (b"\x82\x7e\x00\x7d", "shortest"),
        (b"\x82\x7f\0\0\0\0\0\0\xff\xff", "shortest"),
        (b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", "more than 1000"),
        (b"\x82\x7e\x03\xe9", "more than 1000"),
        (b"\x02\x7e\x03\xe8" + b"x" * 1000 + b"\x80\x01", "more than 1000"),
        (b"\x81\x01\xff", "UTF-8"),
        (b"\x01\x01\xc3\x80\x01\xc3", "UTF-8"),
        (b"\x88\x01\x03", "close"),
        (b"\x88\x02\x03\xe7", "close"),
        (b"\x88\x02\x03\xee", "close"),
        (b"\x88\x03\x03\xe8\xff", "UTF-8"),
    ],
)
@pytest.mark.parametrize("size", [1, 10_000])
def test_malformed_frames(frames: bytes, why: str, size: int) -> None:
    decoder = Decoder(1000)
    with pytest.raises(ProtocolError, match=why):
        for at in range(0, len(frames), size):
            decoder.feed(frames[at : at + size])


def test_mutated_frames() -> None:
    """Whatever comes, in whatever pieces, is decoded alike or refused."""
    chance = random.Random(1)

    def decoded(data: bytes, size: int) -> list[Message] | str:
        decoder, messages = Decoder(1000), list[Message]()
        try:
            for at in range(0, len(data), size):
                messages += decoder.feed(data[at : at + size])
        except ProtocolError as e:
            return str(e)
        return messages

    refused: set[bool] = set()
    for _ in range(3000):
        data = bytearray(STREAM)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.choice(b"\0\x01\x02\x7d\x7e\x7f\x80\x81\x88\x89\xc3\xff")
        whole = decoded(bytes(data), len(data))
        assert decoded(bytes(data), chance.randrange(1, 9)) == whole
        refused.add(isinstance(whole, str))
    assert refused == {True, False}


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 100_001])
def test_client_frames(size: int) -> None:
    """They are those of a server with a mask, which is another one each time."""
    data = random.Random(size).randbytes(size)
    frame = encode(BINARY, data)
    assert encode(BINARY, data) != frame
    long = 0 if size <= 125 else 2 if size < 65536 else 8
    head, mask, content = frame[: 2 + long], frame[2 + long : 6 + long], frame[6 + long :]
    plain = bytes(c ^ mask[n % 4] for n, c in enumerate(content))
    assert Decoder(1 << 20).feed(bytes((head[0], head[1] & 0x7F)) + head[2:] + plain) == [Message(BINARY, data)]


def test_handshake() -> None:
    assert len({new_key() for _ in range(10)}) == 10
    key = "dGhlIHNhbXBsZSBub25jZQ=="  # of RFC 6455
    assert request_headers(key, "p")["Sec-WebSocket-Key"] == key
    accepted = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    good = {"upgrade": "WebSocket", "connection": "Upgrade", "sec-websocket-accept": accepted, "sec-websocket-protocol": "p"}
    check_answer(good, key, "p")
    for name in good:
        for bad in (good | {name: "x"}, {n: v for n, v in good.items() if n != name}):
            with pytest.raises(ProtocolError):
                check_answer(bad, key, "p")
    with pytest.raises(ProtocolError):
        check_answer(good | {"sec-websocket-extensions": "permessage-deflate"}, key, "p")
