# What libraries and environments have in common. The script that uses it is appended.
import glob, os, py_compile, shutil, subprocess, sys

def uv_options():
    """Translates pip's variables to options of uv. Returns None if a variable has no equivalent."""
    value = os.environ.get
    if not value("PIP_INDEX_URL") or value("PIP_PREFER_BINARY"):
        return None
    options = ["--default-index", value("PIP_INDEX_URL"), "--index-strategy", "unsafe-best-match"]  # pip's only one
    for option, name in (
        ("--index", "PIP_EXTRA_INDEX_URL"), ("--find-links", "PIP_FIND_LINKS"), ("--allow-insecure-host", "PIP_TRUSTED_HOST"),
        ("--only-binary", "PIP_ONLY_BINARY"), ("--no-binary", "PIP_NO_BINARY"),
    ):
        words = value(name, "")
        for word in (words.replace(",", " ") if "binary" in option else words).split():
            options += [option, word.replace(",", "%2C")]  # uv splits addresses at commas
    return options

def uv_environment():
    """The environment without settings of uv, which an image may have."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("UV_") and k != "PYTHONPATH"}
    env.update(NO_COLOR="1", UV_PYTHON_DOWNLOADS="never")
    for ours, name in ("SSL_CERT_FILE", "PIP_CERT"), ("UV_HTTP_TIMEOUT", "PIP_TIMEOUT"), ("UV_HTTP_RETRIES", "PIP_RETRIES"):
        if env.get(name):
            env[ours] = env[name]
    return env

def run_uv(uv, prefix, scratch, command, *arguments):
    """Runs a command of uv's that is like one of pip's, and works on prefix. Returns why it failed, or nothing."""
    argv = [uv, "pip", command, "--no-config", "--cache-dir", os.path.join(scratch, "uv"), *uv_options(), *arguments]
    try:
        code = subprocess.run(argv, env=uv_environment(), stdout=subprocess.DEVNULL).returncode
    except OSError as e:
        return str(e)
    if code:
        return "it ended with %d" % code
    if os.path.lexists(os.path.join(prefix, ".lock")):
        os.remove(os.path.join(prefix, ".lock"))

def install_with_uv(uv, prefix, scratch, *arguments):
    """Installs into prefix, and reports whether that succeeded. If not, prefix is empty and pip is to do it:
    pip's word counts, and so an uv that is old, new or broken only takes time."""
    if not uv or uv_options() is None:
        return False
    why = run_uv(uv, prefix, scratch, "install", *arguments)
    if not why:
        return True
    print("uv did not install: %s. Trying pip." % why, flush=True)
    for name in os.listdir(prefix):
        path = os.path.join(prefix, name)
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
    return False

def found(prefix):
    """Where packages were put. All else below it was written by packages: no link is followed, and nothing deep."""
    places = []
    for at, dirs, _ in os.walk(prefix):
        inside = os.path.relpath(at, prefix)
        dirs[:] = [d for d in dirs if not os.path.islink(os.path.join(at, d))]
        here = [d for d in dirs if d in ("site-packages", "dist-packages") and os.path.basename(inside).startswith("python")]
        places += [os.path.join(at, d) for d in here]
        dirs[:] = [d for d in dirs if d not in here] if inside.count(os.sep) < 3 else []
    return sorted(places, key=lambda p: (p.count(os.sep), p))

def sources(prefix):
    """The modules below prefix, without those that links lead to or that lie deeper than modules do. Tests of
    packages, a third of all modules, are left to the few programs that run them."""
    for at, dirs, names in os.walk(prefix):
        dirs[:] = [d for d in dirs if d != "tests"] if os.path.relpath(at, prefix).count(os.sep) < 64 else []
        for path in (os.path.join(at, name) for name in names if name.endswith(".py")):
            if os.path.isfile(path) and not os.path.islink(path):
                yield path

def compile_all(prefix, name=lambda path: path):
    """Compiles all modules on all processors. The processes of compileall may start this script again.
    name is what a module's file is called in what is made of it, until the module is imported."""
    paths = sorted(sources(prefix), key=os.path.getsize)
    processes = min(os.cpu_count() or 1, 32)
    children = []
    for i in range(processes):
        child = os.fork()
        if child:
            children.append(child)
            continue
        try:
            for path in paths[i::processes]:
                try:
                    # The directory is read-only later. Compiled files stay valid whatever times the sources get.
                    py_compile.compile(path, dfile=name(path), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
                except (py_compile.PyCompileError, OSError, ValueError):
                    pass  # of another version of Python, or a template
        finally:
            os._exit(0)
    for child in children:
        os.waitpid(child, 0)

def finish(prefix, site_dir, scratch):
    """Makes ahead what programs would make again in every sandbox."""
    compile_all(prefix)
    # Matplotlib looks through all fonts before the first plot, and keeps what it finds in a
    # directory of its user's. Here it is done once: see _fonts in figures.py.
    if not os.path.isfile(os.path.join(site_dir, "matplotlib", "font_manager.py")):
        return
    find_fonts(os.path.join(os.path.dirname(site_dir), "fonts"), scratch, PYTHONPATH=site_dir)

def find_fonts(fonts, scratch, **variables):
    """Makes the directory fonts, with what matplotlib has found."""
    made = os.path.join(scratch, "matplotlib")
    subprocess.run(
        [sys.executable, "-c", "import matplotlib.font_manager"], env=dict(os.environ, MPLCONFIGDIR=made, **variables),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    os.mkdir(fonts)
    for name in glob.glob(os.path.join(made, "fontlist-*.json")):
        shutil.copy(name, fonts)
