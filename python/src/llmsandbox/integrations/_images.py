"""Images as frameworks want them."""

from __future__ import annotations

import base64

from llmsandbox._results import Artifact


def encoded(image: Artifact) -> str:
    """Return an image's content in base64."""
    return base64.b64encode(image.data).decode("ascii")


def data_url(image: Artifact) -> str:
    """Return a URL that has an image in it."""
    return f"data:{image.mime};base64,{encoded(image)}"
