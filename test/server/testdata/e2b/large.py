"""Sends a file of so many bytes as a stream, as a form, and gzipped, and reads each back as a stream."""

import hashlib
import sys
import tempfile
from random import Random

from e2b import Sandbox

left, random, sent = int(sys.argv[1]), Random(1), hashlib.sha256()
with tempfile.TemporaryFile() as file, Sandbox.create() as sb:
    while left:
        piece = random.randbytes(min(left, 1 << 20))
        file.write(piece)
        sent.update(piece)
        left -= len(piece)
    for form in ({}, {"use_octet_stream": False}, {"gzip": True}):
        file.seek(0)
        sb.files.write("large", file, **form)
        got = hashlib.sha256()
        for piece in sb.files.read("large", format="stream"):
            got.update(piece)
        assert got.digest() == sent.digest(), form
        sb.files.remove("large")
