"""Members of the server's JSON, each checked before it is used."""

from __future__ import annotations

import json
from typing import cast

from llmsandbox._errors import LostError


class MalformedError(LostError):
    """The server's answer is not one of this API."""


class Object:
    """A JSON object of an answer."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise MalformedError("the server's answer cannot be used: a JSON object was expected")
        self.members = cast("dict[str, object]", value)

    def _get(self, name: str, *kinds: type) -> object:
        value = self.members.get(name)
        if value is None:
            return None
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise MalformedError(f"the server's answer cannot be used: {name} is of the wrong type")
        return value

    def text(self, name: str) -> str:
        return cast("str", self._get(name, str) or "")

    def flag(self, name: str) -> bool:
        return bool(self._get(name, bool))

    def integer(self, name: str) -> int:
        return self.integer_or_none(name) or 0

    def integer_or_none(self, name: str) -> int | None:
        return cast("int | None", self._get(name, int))

    def number(self, name: str) -> float:
        value = cast("int | float", self._get(name, int, float) or 0)
        try:
            return float(value)
        except OverflowError:
            raise MalformedError(f"the server's answer cannot be used: {name} is too large") from None

    def values(self, name: str) -> list[object]:
        return cast("list[object]", self._get(name, list) or [])

    def texts(self, name: str) -> list[str]:
        values = self.values(name)
        if not all(isinstance(value, str) for value in values):
            raise MalformedError(f"the server's answer cannot be used: {name} is of the wrong type")
        return cast("list[str]", values)

    def objects(self, name: str) -> list[Object]:
        return [Object(value) for value in self.values(name)]

    def object(self, name: str) -> Object | None:
        value = self.members.get(name)
        return None if value is None else Object(value)

    def text_map(self, name: str) -> dict[str, str]:
        members = self.object(name)
        return {} if members is None else {key: members.text(key) for key in members.members}


def decode(data: bytes) -> object:
    """Decode JSON of an answer."""
    try:
        return cast("object", json.loads(data))
    except (ValueError, RecursionError) as e:
        raise MalformedError(f"the server's answer cannot be used: it is not JSON: {e}") from None


def decode_object(data: bytes) -> Object:
    """Decode a JSON object of an answer."""
    return Object(decode(data))
