"""Writes artifacts into the capture directory, in the form that the reader knows."""

import json
import os

NOTES = 16 << 10  # bytes of notes


_last = 0  # number of the last artifact that this process wrote


def begin(support):
    """Reads what is said beside capture.zip: where artifacts go, and which."""
    global DIRECTORY, UNSHOWN, COUNT, BYTES

    def line(name):
        with open(os.path.join(support, name), encoding="utf-8") as f:
            return f.read()

    DIRECTORY = line("directory")
    settings = json.loads(line("settings"))
    UNSHOWN, COUNT, BYTES = settings["unshown"], settings["count"], settings["bytes"]


begin(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))


def full(size=0):
    """Tells why there is no room for one more artifact, if there is none."""
    count = total = 0
    with os.scandir(DIRECTORY) as entries:
        for entry in entries:
            count += entry.name.endswith(".json")
            try:
                total += entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                continue  # another process has just finished it
    if count >= COUNT:
        return "there are %d already" % count
    if total + size > BYTES:
        return "it would exceed %d bytes" % BYTES
    return None


def room(what, size=0):
    """Tells whether there is room for one more, and notes it when there is none."""
    why = full(size)
    if why:
        note("%s was not captured: %s" % (what, why))
    return why is None


def note(sentence):
    """Says what was left out."""
    try:
        line = " ".join(sentence.split())[:300] + "\n"
        fd = os.open(os.path.join(DIRECTORY, "dropped"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            if os.fstat(fd).st_size < NOTES:
                os.write(fd, line.encode("utf-8", "replace"))
        finally:
            os.close(fd)
    except Exception:
        pass  # the directory is gone: no reader is left


def write(data, description, also=()):
    """Writes one artifact; also are pairs of MIME type and bytes. Returns its number,
    or 0 when there was no room."""
    size = len(data) + sum(len(form) for _, form in also)
    if not room(description["name"], size):
        return 0
    number, fd = _claim()
    written = []
    try:
        _fill(fd, data)
        forms = []
        for i, (mime, form) in enumerate(also, 1):
            name = "%06d.%d.data" % (number, i)
            written.append(name)
            _fill(_create(name), form)
            forms.append({"mime": mime, "file": name})
        if forms:
            description = dict(description, also=forms)
        written.append("%06d.tmp" % number)
        _fill(_create(written[-1]), json.dumps(description, allow_nan=False).encode())
        os.rename(_path(written[-1]), _path("%06d.json" % number))
    except BaseException:
        for name in written + ["%06d.data" % number]:
            _remove(name)
        raise
    return number


def take_back(number):
    """Removes an artifact that a later one replaces, unless it has been read."""
    _remove("%06d.json" % number)
    _remove("%06d.data" % number)


def _claim():
    """A number that no other process of the program has, and its file."""
    global _last
    while True:
        _last += 1
        try:
            return _last, _create("%06d.data" % _last)
        except FileExistsError:
            continue


def _path(name):
    return os.path.join(DIRECTORY, name)


def _create(name):
    return os.open(_path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)


def _fill(fd, data):
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest):]
    finally:
        os.close(fd)


def _remove(name):
    try:
        os.unlink(_path(name))
    except OSError:
        pass  # it was read, or never made
