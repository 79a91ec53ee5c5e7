"""Results, of which everything may be hostile."""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path

import pytest
from PIL import Image

import llmsandbox
from llmsandbox._json import Object
from llmsandbox._results import parse_cell, parse_result

HOSTILE = "<script>alert(1)</script>\x1b[2J'\"&"


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (3, 2)).save(buffer, "PNG")
    return buffer.getvalue()


def result(**members: object) -> llmsandbox.Result:
    return parse_result(Object({"status": "ok", "exit_code": 0, "stdout": "", "stderr": "", "duration_ms": 2000, "cpu_ms": 1500} | members))


def artifact(mime: str, data: bytes, **members: object) -> dict[str, object]:
    return {"name": HOSTILE, "mime": mime, "data": base64.b64encode(data).decode()} | members


def test_fields() -> None:
    chart = {
        "title": "t",
        "axes": [
            {"title": "a", "x": {"label": "l", "scale": "linear"}, "y": {}, "series": [{"type": "line", "x": [1, 2], "y": [3, None]}]}
        ],
    }
    got = result(
        artifacts=[
            artifact("image/png", png(), chart=chart, also=[{"mime": "text/csv", "data": "YQ=="}]),
            artifact("text/csv", b"a", source="file"),
        ],
        network=[{"name": "example.org", "port": 443, "allowed": False, "refused": "not-allowed", "time": "t"}],
        hints=[{"kind": "library", "subject": "x"}],
        findings=[{"rule": "module:os", "severity": "high", "reason": "r", "code": "import os", "line": 1}],
        not_enforced=["disk"],
    )
    assert (got.duration, got.cpu_time) == (2, 1.5)
    assert [a.mime for a in got.plots] == ["image/png"]
    assert [a.mime for a in got.files] == ["text/csv"]
    assert got.charts[0].axes[0].series[0] == llmsandbox.Series("line", x=[1, 2], y=[3, None])
    assert got.artifacts[0].also[0].data == b"a"
    assert got.network == [llmsandbox.NetworkAttempt("example.org", 443, False, refused="not-allowed")]
    assert got.hints == [llmsandbox.Hint("library", "x")]
    assert got.findings[0].rule == "module:os"
    assert got.not_enforced == ["disk"]


def test_html_is_escaped() -> None:
    got = parse_cell(
        Object(
            {
                "status": "error",
                "stdout": HOSTILE,
                "stderr": HOSTILE,
                "reason": HOSTILE,
                "value": {"text/html": HOSTILE, "text/plain": HOSTILE},
                "error": {"name": HOSTILE, "message": HOSTILE, "traceback": HOSTILE},
                "artifacts": [artifact("image/png", png()), artifact("text/html", HOSTILE.encode()), artifact(HOSTILE, b"x")],
            }
        )
    )
    html = got._repr_html_()
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 8
    assert html.count("<img ") == 1
    bundle = got.artifacts[0]._repr_mimebundle_()
    assert "<script" not in str(bundle["text/html"])
    assert "text/html" not in got.artifacts[1]._repr_mimebundle_()


def test_html_is_bounded() -> None:
    got = result(stdout="<" * 10_000_000, artifacts=[artifact("image/png", b"x" * (20 << 20))])
    assert len(got._repr_html_()) < 1_000_000


def test_repr_is_printable() -> None:
    got = result(stdout=HOSTILE, artifacts=[artifact("image/png", png())])
    assert repr(got).isprintable()
    assert repr(got.artifacts[0]).isprintable()


def test_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture, page = result(artifacts=[artifact("image/png", png()), artifact("text/html", b"<p>")]).artifacts
    assert picture.to_pil().size == (3, 2)
    picture.save(tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes() == png()
    with pytest.raises(ValueError, match="Pillow does not read"):
        page.to_pil()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        picture.to_pil()
