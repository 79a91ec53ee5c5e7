"""Pictures of Pillow's that are shown."""

import functools
import io

from . import is_busy, quiet, store

PIXELS = 24_000_000
_names = 0


def _image(module):
    original = module.Image.show

    @functools.wraps(original)
    def show(self, title=None):
        if not is_busy():
            self.load()  # as showing does: its errors are the program's
            with quiet("a picture"):
                shown(self, title)

    module.Image.show = show


def shown(image, title=None):
    global _names
    if image.width * image.height > PIXELS:
        image = image.copy()
        image.thumbnail((4096, 4096))
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        image = image.convert("RGBA" if "A" in image.getbands() else "RGB")
    out = io.BytesIO()
    image.save(out, "PNG")
    _names += 1
    store.write(out.getvalue(), {
        "name": "picture-%d.png" % _names, "mime": "image/png", "source": "pillow",
        "title": str(title or "")[:300], "width": image.width, "height": image.height})


LOOK_AFTER = {"PIL.Image": _image}
