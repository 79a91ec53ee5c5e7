# Written by unasync.py from _async/session.py. Do not edit it.
"""Sends requests to one server and reads its answers."""

from __future__ import annotations

import itertools
import time
from collections.abc import Generator, Callable, Sequence

from llmsandbox._sync.transport import Connection, Transport
from llmsandbox._sync.websocket import WebSocket
from llmsandbox._describe import Response
from llmsandbox._endpoint import Endpoint
from llmsandbox._errors import APIError, LostError
from llmsandbox._events import EventDecoder
from llmsandbox._frames import check_answer, new_key, request_headers
from llmsandbox._http import Decoder, ProtocolError, encode_head
from llmsandbox._json import MalformedError, Object, decode_object
from llmsandbox._request import (
    EVENTS,
    MAX_ANSWER,
    MAX_PROBLEM,
    MAX_READ,
    MAX_RESULT,
    Body,
    Content,
    Request,
    is_content,
    is_last,
    lost,
    media_type,
    of_port,
    opened,
    refusal,
    retry_after,
    unreachable,
)
from llmsandbox._results import Event
from llmsandbox._runs import R, event_of

# Larger bodies are sent once the server asks for them, so that what is refused is not sent.
SMALL_BODY = 64 << 10
PROCEED_TIME = 2.0


class Answer:
    """An answer whose head has come. It must be closed."""

    def __init__(self, transport: Transport, connection: Connection, decoder: Decoder, body: bytes) -> None:
        self.status = decoder.status
        self.headers = decoder.headers
        self.fields = decoder.fields
        self.trailers = decoder.trailers  # once the body has come to its end
        self._transport = transport
        self._connection = connection
        self._decoder = decoder
        self._body = body  # what has come of it with the head

    def piece(self) -> bytes:
        """Return a piece of the body; b"" is its end. Fails with LostError where it did not come to its end."""
        body, self._body = self._body, b""
        try:
            while not body and not self._decoder.done:
                body = self._decoder.feed(self._connection.receive() or b"")
        except (OSError, ProtocolError) as e:
            raise LostError(f"the connection to the server ended: {e}") from e
        return body

    def read(self, most: int) -> bytes:
        """Return the whole body. Fails with MalformedError if it is larger than most bytes."""
        body = bytearray()
        while piece := self.piece():
            body += piece
            if len(body) > most:
                raise MalformedError(f"the server's answer cannot be used: it has more than {most} bytes")
        return bytes(body)

    def switch(self) -> WebSocket:
        """Return the connection as a WebSocket, which is closed in place of the answer."""
        return WebSocket(self._connection, self._body)

    def close(self) -> None:
        """Have the connection used again, or close it if the answer did not come to its end."""
        if self._decoder.done and self._decoder.keep_alive:
            self._transport.release(self._connection)
        else:
            self._connection.close()


class Session:
    """Sends requests to one server. Their paths are below `base`."""

    def __init__(self, transport: Transport, endpoint: Endpoint, base: str = "") -> None:
        self.endpoint = endpoint
        self._transport = transport
        self._base = base

    def below(self, base: str) -> Session:
        """Return a session for requests below a path."""
        return Session(self._transport, self.endpoint, self._base + base)

    def json(self, request: Request, most: int = MAX_ANSWER) -> Object:
        """Return the JSON object of an answer."""
        answer = self.send(request)
        try:
            return decode_object(answer.read(most))
        finally:
            answer.close()

    def result(self, request: Request) -> Object:
        """Return the result of code that was run."""
        return self.json(request, MAX_RESULT)

    def empty(self, request: Request) -> None:
        """Send a request whose answer has no content."""
        (self.send(request)).close()

    def content(self, request: Request) -> bytes:
        """Return the content of a file."""
        answer = self._content(request)
        try:
            return answer.read(MAX_READ)
        finally:
            answer.close()

    def copy(self, request: Request, write: Callable[[bytes], object]) -> dict[str, str]:
        """Hand on the content of a file or archive as it comes, and return the trailers."""
        answer = self._content(request)
        try:
            while piece := answer.piece():
                write(piece)
            return answer.trailers
        finally:
            answer.close()

    def _content(self, request: Request) -> Answer:
        answer = self.send(request)
        if not is_content(request, answer.headers):
            answer.close()
            raise MalformedError("the server's answer cannot be used: it is not a file's content whose end can be seen")
        return answer

    def outcome(self, request: Request, parse: Callable[[Object], R]) -> Generator[Event, None, None]:
        """Yield the events of code that is run, up to its end. The server ends the code if the generator is closed before."""
        answer = self.send(request)
        try:
            if media_type(answer.headers) != EVENTS:
                raise MalformedError("the server's answer cannot be used: it is not a stream of events")
            decoder = EventDecoder(MAX_RESULT)
            while piece := answer.piece():
                for received in decoder.feed(piece):
                    event = event_of(received, parse)
                    if event is not None:
                        yield event
                        if event.kind == "done":
                            return
        finally:
            answer.close()
        raise LostError("the server's stream ended too early")

    def websocket(self, path: str, query: Sequence[tuple[str, str]], protocol: str) -> WebSocket:
        """Open a WebSocket with a protocol."""
        key = new_key()
        answer = self.send(Request("GET", path, query, upgrade=request_headers(key, protocol), success=101))
        try:
            check_answer(answer.headers, key, protocol)
        except ProtocolError as e:
            answer.close()
            raise lost(self.endpoint, e) from e
        return answer.switch()

    def port(self, request: Request) -> Response:
        """Return what a server inside a sandbox answers."""
        answer = self._attempt(request, request.encoded())
        try:
            if not of_port(answer.fields):
                raise refusal(answer.status, answer.headers, answer.read(MAX_PROBLEM))
            return Response(answer.status, answer.headers, answer.read(MAX_RESULT))
        finally:
            answer.close()

    def send(self, request: Request) -> Answer:
        """Send a request, again if nothing was begun, and return its answer, which is a success."""
        body = request.encoded()
        since = time.monotonic()
        for attempt in itertools.count(1):
            answer = self._attempt(request, body)
            if answer.status in (request.success, request.also):
                return answer
            try:
                refused = refusal(answer.status, answer.headers, answer.read(MAX_PROBLEM))
            finally:
                answer.close()
            code = refused.code if isinstance(refused, APIError) else ""
            wait = retry_after(request, answer.status, code, answer.headers)
            if wait is None or is_last(self.endpoint, code, attempt, since):
                raise refused
            self._transport.sleep(wait)
        raise AssertionError("unreachable")

    def _attempt(self, request: Request, content: Content) -> Answer:
        with opened(content) as body:
            return self._exchange(request, body)

    def _exchange(self, request: Request, body: Body) -> Answer:
        headers = self.endpoint.headers() | request.headers(body.length)
        small = body.length is not None and body.length <= SMALL_BODY
        if not small:
            headers["Expect"] = "100-continue"
        head = encode_head(request.method, self.endpoint.prefix + self._base + request.target, headers)
        if small:
            head += b"".join(body.pieces)
        fresh = False
        while True:
            try:
                connection = self._transport.connect(self.endpoint, fresh)
            except OSError as e:
                raise unreachable(self.endpoint, e) from e
            decoder = Decoder(request.upgrade is not None)
            try:
                connection.send(head)
                received = b"" if small else self._send_body(connection, decoder, body)
                while not decoder.status:
                    received += decoder.feed(connection.receive() or b"")
                return Answer(self._transport, connection, decoder, received)
            except (OSError, ProtocolError) as e:
                connection.close()
                if connection.reused and request.method == "GET" and not decoder.status:
                    fresh = True  # the server has closed the connection before the request came
                    continue
                raise lost(self.endpoint, e) from e
            except BaseException:
                connection.close()
                raise

    def _send_body(self, connection: Connection, decoder: Decoder, body: Body) -> bytes:
        """Send a body, unless the server refuses it before, and return what has come of the answer's body."""
        received = b""
        while not decoder.proceed and not decoder.status:
            data = connection.receive(PROCEED_TIME)
            if data is None:
                break  # something between does not know of 100 Continue
            received += decoder.feed(data)
        if decoder.status:
            decoder.keep_alive = False  # the server still expects the body
            return received
        try:
            for piece in body.pieces:
                connection.send(piece)
        except ConnectionError:
            pass  # the server takes no more: its answer says why
        return received
