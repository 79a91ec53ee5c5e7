"""Matplotlib's figures: when they are shown and saved."""

import atexit
import functools
import io
import os
import stat
import sys
import weakref

from . import is_busy, nothing_captured, quiet, store

# Backends that draw without a window; the inline ones show in a notebook, which we are.
WINDOWLESS = {"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"}
MIME = {
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg",
    "svg": "image/svg+xml", "pdf": "application/pdf", "pgf": "text/latex",
}
PICTURES = {"png", "jpg", "jpeg"}
PIXELS = 24e6  # of a picture that we draw; beyond it is coarser

_known = weakref.WeakKeyDictionary()  # figure -> Known
_names = 0


class Known:
    """What was captured of a figure since it last changed."""

    def __init__(self):
        self.fresh = False  # the figure is as it was when it was captured as a picture
        self.number = 0     # of the artifact that show() made of it
        self.digest = None  # of that picture
        self.waiting = False  # pause() showed it; its last state is wanted


def _package(matplotlib):
    """Without a display there is one backend that works: no need to try the others."""
    _fonts(matplotlib)
    if any(os.environ.get(name) for name in ("MPLBACKEND", "DISPLAY", "WAYLAND_DISPLAY")):
        return
    with quiet("choosing matplotlib's backend"):
        if not isinstance(dict.__getitem__(matplotlib.rcParams, "backend"), str):
            matplotlib.rcParams["backend"] = "agg"


def _fonts(matplotlib):
    """Spares matplotlib the search for fonts, whose result was kept where its library was
    installed. It gets a copy, where it looks for one, because it writes there, too."""
    with quiet("matplotlib's list of fonts"):
        kept = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(matplotlib.__file__))), "fonts")
        for name in os.listdir(kept) if os.path.isdir(kept) else []:
            copy = os.path.join(matplotlib.get_cachedir(), name)
            if name.startswith("fontlist-") and not os.path.lexists(copy):
                with open(os.path.join(kept, name), "rb") as source, open(copy, "wb") as target:
                    target.write(source.read())


def _bases(module):
    original = module.FigureCanvasBase.print_figure

    @functools.wraps(original)
    def print_figure(self, filename, dpi=None, facecolor=None, edgecolor=None, orientation="portrait", format=None, **kwargs):
        if is_busy() or type(filename).__name__ == "PdfPages":
            return original(self, filename, dpi, facecolor, edgecolor, orientation, format, **kwargs)
        target, buffer = filename, None
        if hasattr(filename, "write") and not isinstance(filename, (str, bytes, os.PathLike)):
            target = buffer = io.StringIO() if isinstance(filename, io.TextIOBase) else io.BytesIO()
        known = _known.get(self.figure, Known())
        fresh = known.fresh
        result = original(self, target, dpi, facecolor, edgecolor, orientation, format, **kwargs)
        known.fresh = fresh  # saving changes colours and back
        if buffer is not None:
            filename.write(buffer.getvalue())
        with quiet("a saved figure"):
            _saved(self, filename, buffer, dpi, format)
        return result

    module.FigureCanvasBase.print_figure = print_figure


def _saved(canvas, target, buffer, dpi, format):
    figure = canvas.figure
    name = os.path.basename(os.fsdecode(target)) if buffer is None else os.path.basename(str(getattr(target, "name", "")))
    ending = os.path.splitext(name)[1][1:].lower()
    kind = (format or (ending if buffer is None else "") or canvas.get_default_filetype()).lower().lstrip(".")
    if kind in ("raw", "rgba"):
        return  # somebody else's raw material
    if buffer is None:
        path = os.fsdecode(target)
        if format is None and not ending:
            path, name = path.rstrip(".") + "." + kind, name.rstrip(".") + "." + kind
        data = read(path)
        if data is None:
            return
    else:
        data = buffer.getvalue()
        if isinstance(data, str):
            data = data.encode("utf-8", "replace")
        if not ending:
            name = _name(kind)
    known = _known.get(figure)
    if kind in PICTURES and known is not None and known.fresh and known.number:
        store.take_back(known.number)  # the same picture, under the name that it was given
    about = _about(figure, name, MIME.get(kind, "application/octet-stream"))
    if isinstance(dpi, (int, float)) and dpi > 0:
        about["dpi"] = dpi
    if kind == "png":
        about["width"], about["height"] = png_size(data)
    store.write(data, about)
    known = _remember(figure)
    known.waiting = False
    if kind in PICTURES:
        known.fresh, known.number = True, 0


def read(path):
    """The content of a regular file that there is room for."""
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode) or not store.room(os.path.basename(path), found.st_size):
        return None
    with open(path, "rb") as f:
        return f.read()


def png_size(data):
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def _figure(module):
    original = module.Figure.show

    @functools.wraps(original)
    def show(self, *args, **kwargs):
        if getattr(self.canvas, "manager", None) is None or _windows():
            result = original(self, *args, **kwargs)
            if getattr(self.canvas, "manager", None) is None:
                return result
        if not is_busy():
            _shown(self)

    module.Figure.show = show


def _pyplot(pyplot):
    from matplotlib._pylab_helpers import Gcf

    original_show, original_pause, original_savefig = pyplot.show, pyplot.pause, pyplot.savefig
    last = []  # the current figure when show() closed it
    pausing = []

    @functools.wraps(original_show)
    def show(*args, **kwargs):
        if is_busy():
            return None
        managers = Gcf.get_all_fig_managers()
        if pausing:
            for manager in managers:
                _remember(manager.canvas.figure).waiting = True
        else:
            for manager in managers:
                _shown(manager.canvas.figure)
        if _windows():
            return original_show(*args, **kwargs)
        block = args[0] if args else kwargs.get("block")
        if not pausing and managers and (block or (block is None and not pyplot.isinteractive())):
            # As when windows are closed: what is plotted next is another figure.
            last[:] = [Gcf.get_active().canvas.figure]
            Gcf.destroy_all()

    @functools.wraps(original_pause)
    def pause(interval):
        pausing.append(True)
        try:
            return original_pause(interval)
        finally:
            pausing.pop()

    @functools.wraps(original_savefig)
    def savefig(*args, **kwargs):
        if last and not Gcf.get_all_fig_managers():
            return last[0].savefig(*args, **kwargs)
        last.clear()
        return original_savefig(*args, **kwargs)

    pyplot.show, pyplot.pause, pyplot.savefig = show, pause, savefig
    tools = sys.modules.get("IPython.core.pylabtools")
    if tools is not None:  # what IPython draws to display is published by it
        tools.print_figure = _unwatched(tools.print_figure)
    atexit.register(_at_exit)
    os.register_at_fork(after_in_child=_at_fork)


def _windows():
    """Tells whether figures get windows of their own, which show() then waits for."""
    import matplotlib

    backend = dict.__getitem__(matplotlib.rcParams, "backend")
    return isinstance(backend, str) and backend.lower() not in WINDOWLESS and "inline" not in backend.lower()


def _open():
    gcf = sys.modules["matplotlib._pylab_helpers"].Gcf
    return [m.canvas.figure for m in gcf.get_all_fig_managers()]


def show_open():
    """Shows what is open, as a notebook does when a cell has ended."""
    pyplot = sys.modules["matplotlib.pyplot"]
    for figure in _open():
        _shown(figure)
    with quiet("closing figures"):
        if not _windows():
            pyplot.close("all")
        _known.clear()


def _at_exit():
    for figure in _open():
        known = _known.get(figure)
        if (known is not None and known.waiting) or (known is None and store.UNSHOWN):
            _shown(figure)


def _at_fork():
    """What is open is for the parent to show."""
    for figure in _open():
        _remember(figure).waiting = False


def _shown(figure):
    with quiet("a shown figure"):
        if not any((figure.axes, figure.texts, figure.images, figure.lines, figure.patches, figure.artists)):
            return
        known = _remember(figure)
        known.waiting = False
        if known.fresh or not store.room("a shown figure"):
            return
        data, dpi = draw(figure)
        digest = hash(data)
        if digest != known.digest:
            about = _about(figure, _name("png"), "image/png")
            about["width"], about["height"] = png_size(data)
            about["dpi"] = dpi
            known.number = store.write(data, about)
        known.fresh, known.digest = True, digest


def draw(figure):
    """The figure as a notebook shows it, and its resolution."""
    original = figure.canvas.print_figure
    pixels = figure.get_figwidth() * figure.get_figheight() * figure.dpi ** 2
    dpi = figure.dpi * min(1, (PIXELS / max(pixels, 1)) ** 0.5)
    around = figure.get_tightbbox

    def get_tightbbox(*args, **kwargs):
        box = around(*args, **kwargs)
        # What lies far outside would make a picture that no memory holds.
        if not 0 < box.width * box.height * dpi ** 2 <= PIXELS:
            return figure.bbox_inches
        return box

    def drawn(**how):
        out = io.BytesIO()
        original(out, format="png", dpi=dpi, facecolor=figure.get_facecolor(), edgecolor=figure.get_edgecolor(), **how)
        return out.getvalue()

    figure.get_tightbbox = get_tightbbox
    try:
        try:
            return drawn(bbox_inches="tight"), dpi
        except Exception:  # text can be too far away to be measured
            return drawn(bbox_inches=None), dpi
    finally:
        del figure.get_tightbbox


def _remember(figure):
    """What is known of a figure, which from then on tells when it changes."""
    known = _known.get(figure)
    if known is None:
        known = _known[figure] = Known()
    before = figure.stale_callback
    if not isinstance(before, Changes) or before.known is not known:
        figure.stale_callback = Changes(known, before.before if isinstance(before, Changes) else before)
    return known


class Changes:
    """In place of a figure's stale_callback, calls it."""

    def __init__(self, known, before):
        self.known, self.before = known, before

    def __call__(self, artist, value):
        # Drawing after saving changes nothing that is seen.
        if value and not is_busy() and not getattr(artist.canvas, "_is_idle_drawing", False):
            self.known.fresh = False
        if self.before is not None:
            self.before(artist, value)


def _name(kind):
    global _names
    _names += 1
    return "figure-%d.%s" % (_names, kind)


def _about(figure, name, mime):
    about = {"name": name[-200:], "mime": mime, "source": "matplotlib", "dpi": float(figure.dpi)}
    manager = getattr(figure.canvas, "manager", None)
    if manager is not None and isinstance(getattr(manager, "num", None), int):
        about["figure"] = manager.num
    about["title"] = title(figure)
    from . import charts

    chart = charts.read(figure)
    if chart is not None:
        about["chart"] = chart
    return about


def title(figure):
    """What stands above the figure."""
    above = getattr(figure, "_suptitle", None)
    if above is not None and above.get_text():
        return above.get_text()[:300]
    titles = [t for t in (ax.get_title(loc) for ax in figure.axes for loc in ("center", "left", "right")) if t]
    return titles[0][:300] if len(titles) == 1 else str(figure.get_label() or "")[:300]


def _animation(module):
    """An animation saves its pictures one by one; the whole is a file like any other."""
    for kind, method in ((module.Animation, "save"), (module.Animation, "to_jshtml"), (module.Animation, "to_html5_video")):
        setattr(kind, method, _unwatched(getattr(kind, method)))


def _unwatched(original):
    @functools.wraps(original)
    def call(*args, **kwargs):
        with nothing_captured():
            return original(*args, **kwargs)

    return call


def _axes(module):
    """Boxes are only lines once they are drawn: what they stand for is kept."""
    original = module.Axes.bxp

    @functools.wraps(original)
    def bxp(self, bxpstats, *args, **kwargs):
        drawn = original(self, bxpstats, *args, **kwargs)
        if not is_busy():
            with quiet("what boxes show"):
                from . import charts

                charts.remember_boxes(self, bxpstats, drawn)
        return drawn

    module.Axes.bxp = bxp


def _inline(module):
    """What is open at the end of a cell is shown by us: see end_of_cell."""
    module.flush_figures = lambda: None


def _pdf(module):
    """Several pages: the file is whole when it is closed."""
    original_init, original_close = module.PdfPages.__init__, module.PdfPages.close
    targets = {}  # by id of what is open

    @functools.wraps(original_init)
    def init(self, filename, *args, **kwargs):
        original_init(self, filename, *args, **kwargs)
        targets[id(self)] = filename

    @functools.wraps(original_close)
    def close(self):
        result = original_close(self)
        target = targets.pop(id(self), None)
        if target is not None and not is_busy():
            with quiet("a PDF"):
                if hasattr(target, "getvalue"):
                    data, name = target.getvalue(), _name("pdf")
                elif not hasattr(target, "write") and os.path.exists(target):  # without pages there may be none
                    data, name = read(target), os.path.basename(os.fsdecode(target))
                else:
                    return result
                if data:
                    store.write(data, {"name": name, "mime": "application/pdf", "source": "matplotlib"})
        return result

    module.PdfPages.__init__, module.PdfPages.close = init, close


LOOK_AFTER = {
    "matplotlib": _package,
    "matplotlib.backend_bases": _bases,
    "matplotlib.figure": _figure,
    "matplotlib.pyplot": _pyplot,
    "matplotlib.animation": _animation,
    "matplotlib.axes._axes": _axes,
    "matplotlib.backends.backend_pdf": _pdf,
    "matplotlib_inline.backend_inline": _inline,
}
