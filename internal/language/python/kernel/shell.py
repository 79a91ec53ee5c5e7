"""Runs cells in IPython's shell."""
import os
import sys
import warnings


def make(driver, directory):
    # Before IPython looks for its directory: nothing is written elsewhere.
    os.environ["IPYTHONDIR"] = os.path.join(directory, "ipython")
    from IPython.core.autocall import ExitAutocall
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets import default
    from traitlets.config import Config

    class Exit(ExitAutocall):
        """What cells find as exit and quit: called or not, it ends the cell."""

        def __call__(self, code=None):
            raise SystemExit(code)

    class Hook(DisplayHook):
        """Keeps a value's forms instead of printing them."""

        forms = None

        def __call__(self, result=None):
            if isinstance(result, Exit):
                result()
            super().__call__(result)

        def write_output_prompt(self):
            pass

        def write_format_data(self, format_dict, md_dict=None):
            self.shell.shown = format_dict

        def finish_displayhook(self):
            pass

        def quiet(self):
            # IPython looks for the semicolon in the history, which is there.
            return super().quiet()

    class Publisher(DisplayPublisher):
        """Has what is displayed become artifacts where there is more to it than text."""

        def publish(self, data, *args, **kwargs):
            try:
                import llmsandbox_capture
            except ImportError:  # nothing is captured
                llmsandbox_capture = None
            if llmsandbox_capture is None or set(data) <= {"text/plain"} or not llmsandbox_capture.publish(data):
                super().publish(data, *args, **kwargs)

    class Shell(InteractiveShell):
        displayhook_class = Hook
        display_pub_class = Publisher
        shown = None
        traceback_text = None

        def _showtraceback(self, etype, evalue, stb):
            self.traceback_text = self.InteractiveTB.stb2text(stb)

        def showtraceback(self, *args, **kwargs):
            error = sys.exc_info()[1]
            if not isinstance(error, SystemExit):
                driver.without_ours(error)
                super().showtraceback(*args, **kwargs)

        @default("exiter")
        def _exiter_default(self):
            return Exit(self)

        def enable_gui(self, gui=None):
            pass  # there is no screen, and nothing that would draw on it

    config = Config()
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.autoindent = False
    config.HistoryManager.enabled = False
    config.IPCompleter.use_jedi = False
    # The environment is the sandbox's, not that of a directory above.
    warnings.filterwarnings("ignore", message="To exit: use")
    shell = Shell.instance(config=config, user_module=driver.main, ipython_dir=os.environ["IPYTHONDIR"])
    shell.system = shell.system_raw  # not through a terminal, which would merge the streams
    for module, name in (("matplotlib.figure", "Figure"), ("PIL.Image", "Image")):
        shell.display_formatter.ipython_display_formatter.for_type_by_name(module, name, show)
    return Cells(driver, shell)


def show(value):
    """Has a value become an artifact instead of forms of it."""
    captured = sys.modules.get("llmsandbox_capture")
    if captured is None or not captured.show(value):
        raise NotImplementedError  # as IPython's formatters say it


class Cells:
    def __init__(self, driver, shell):
        self.driver = driver
        self.shell = shell
        shell.register_magic_function(self.pip, "line", "pip")
        self.hidden = set(shell.user_ns) | set(shell.user_ns_hidden)

    @property
    def user_ns(self):
        return self.shell.user_ns

    def pip(self, line):
        """%pip install: libraries from the host's cache or registries."""
        words = line.split()
        if words[:1] == ["install"]:
            self.driver.load("tools").install(self.driver, words[1:])
        else:
            import subprocess
            subprocess.call([sys.executable, "-m", "pip", *words])

    def run(self, code):
        shell = self.shell
        shell.shown = shell.traceback_text = None
        result = shell.run_cell(code, store_history=True)
        outcome = {"status": "ok", "count": shell.execution_count - 1}
        error = result.error_before_exec or result.error_in_exec
        if error is not None:
            outcome.update(self.driver.failure(error))
            if "error" in outcome:
                failure = outcome["error"]
                failure["traceback"] = (shell.traceback_text or "%(name)s: %(message)s\n" % failure)[:1 << 20]
        elif shell.shown is not None:
            outcome["value"] = {k: text(v) for k, v in shell.shown.items() if len(v) <= 1 << 20}
            self.driver.add_data(outcome["value"], result.result)
        return outcome

    def completions(self, code, cursor):
        from IPython.core.completer import provisionalcompleter
        with provisionalcompleter():
            found = list(self.shell.Completer.completions(code, cursor))
        start = min((c.start for c in found), default=cursor)
        return start, sorted({code[start:c.start] + c.text for c in found})

    def forget(self):
        self.shell.reset(new_session=False)


def text(data):
    if isinstance(data, bytes):
        import base64
        return base64.b64encode(data).decode()
    if isinstance(data, str):
        return data
    import json
    return json.dumps(data)
