# What libraries and environments have in common. The script that uses it is appended.
import compileall, glob, os, py_compile, shutil, subprocess, sys

def finish(prefix, site_dir, scratch):
    """Makes ahead what programs would make again in every sandbox."""
    # The directory is read-only later. Compiled files stay valid whatever times the sources get.
    compileall.compile_dir(prefix, maxlevels=64, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    # Matplotlib looks through all fonts before the first plot, and keeps what it finds in a
    # directory of its user's. Here it is done once: see _fonts in figures.py.
    if not os.path.isfile(os.path.join(site_dir, "matplotlib", "font_manager.py")):
        return
    made = os.path.join(scratch, "matplotlib")
    subprocess.run(
        [sys.executable, "-c", "import matplotlib.font_manager"], env=dict(os.environ, PYTHONPATH=site_dir, MPLCONFIGDIR=made),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    fonts = os.path.join(os.path.dirname(site_dir), "fonts")
    os.mkdir(fonts)
    for name in glob.glob(os.path.join(made, "fontlist-*.json")):
        shutil.copy(name, fonts)
