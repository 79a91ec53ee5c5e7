"""Server-Sent Events, as they come in pieces of any size."""

from __future__ import annotations

from dataclasses import dataclass

from llmsandbox._json import MalformedError


@dataclass(frozen=True)
class ServerEvent:
    """An event of the server's stream."""

    name: str
    data: bytes
    id: str = ""


class EventDecoder:
    """Decodes a stream of events. None may be longer than most bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._buffer = bytearray()
        self._searched = 0
        self._name = ""
        self._id = ""
        self._data = bytearray()

    def feed(self, data: bytes) -> list[ServerEvent]:
        """Take what has come and return the events that end in it."""
        self._buffer += data
        events: list[ServerEvent] = []
        start = 0
        while (end := self._buffer.find(b"\n", max(start, self._searched))) >= 0:
            line = bytes(self._buffer[start:end]).rstrip(b"\r")
            start = end + 1
            self._line(line, events)
        del self._buffer[:start]
        self._searched = len(self._buffer)
        if len(self._buffer) + len(self._data) > self._most:
            raise MalformedError(f"an event of the server has more than {self._most} bytes")
        return events

    def _line(self, line: bytes, events: list[ServerEvent]) -> None:
        if not line:
            if self._name:
                events.append(ServerEvent(self._name, bytes(self._data), self._id))
            self._name, self._id, self._data = "", "", bytearray()
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id":
            self._id = value.decode("utf-8", "replace")
        elif field == b"data":
            self._data += value  # the server's data is one line of JSON
