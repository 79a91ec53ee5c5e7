"""What is shown and saved without a change in between is one artifact."""

import hashlib

from . import store

_known = {}  # digest of the content -> number of the artifact that showing made; 0: saved


def digest(source, content):
    return hashlib.sha256((source + content).encode("utf-8", "replace")).digest()


def shown(key, write):
    """Has an artifact written unless there is one."""
    if key not in _known:
        _known[key] = write()


def saved(key):
    """Takes back what a saved page replaces."""
    number = _known.get(key)
    if number:
        store.take_back(number)
    _known[key] = 0


def forget():
    """What comes next is looked at by itself."""
    _known.clear()
