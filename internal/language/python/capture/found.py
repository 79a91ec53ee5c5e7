# Part of sitecustomize.py, for when a library to look after is imported.
KEEPERS = {
    "PIL": "pictures", "matplotlib": "figures", "matplotlib_inline": "figures",
    "plotly": "plotly", "bokeh": "bokeh", "altair": "altair",
}


def find(ours, name, path, target):
    """Finds what the other finders find, and has it looked after once it is loaded."""
    if name == "llmsandbox_capture":
        path = [SUPPORT + "/capture.zip"]
    for finder in sys.meta_path:
        if finder is ours or not hasattr(finder, "find_spec"):
            continue
        spec = finder.find_spec(name, path, target)
        if spec is not None:
            if name != "llmsandbox_capture":
                watch(spec.loader, KEEPERS[name.partition(".")[0]])
            return spec
    return None


def watch(loader, keeper):
    load = getattr(loader, "exec_module", None)
    if load is None or not hasattr(loader, "__dict__"):
        return

    def then(module):
        del loader.exec_module
        load(module)
        try:
            import llmsandbox_capture

            llmsandbox_capture.keep(keeper, module)
        except Exception as problem:
            note(module.__name__, problem)

    # Python leaves its own importing out of tracebacks; this is part of it.
    if hasattr(then.__code__, "replace"):
        then.__code__ = then.__code__.replace(
            co_filename="<frozen importlib._bootstrap>", co_name="_call_with_frames_removed"
        )
    loader.exec_module = then


def note(name, problem):
    try:
        with open(SUPPORT + "/directory", encoding="utf-8") as f, open(f.read() + "/dropped", "a", encoding="utf-8") as out:
            out.write("what %s shows cannot be captured: %r\n" % (name, problem))
    except Exception:
        pass  # there is nobody to tell
