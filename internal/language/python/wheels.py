
# Installs wheels one by one, so that each is installed once for all lists.
#   wheels.py lock DIR SCRATCH UV -- REQUIREMENT...
#   wheels.py install DIR SCRATCH UV -- NAME==VERSION SHA256...
#   wheels.py fonts DIR SCRATCH UV --
import sysconfig

command, prefix, scratch, uv = sys.argv[1:5]
arguments = sys.argv[sys.argv.index("--") + 1:]

def lock():
    """Has uv find all packages, unless it is to build some, or puts native ones elsewhere. Then there is no lock."""
    options, paths = uv_options(), sysconfig.get_paths()
    if options is None or "--no-binary" in options or paths["purelib"] != paths["platlib"]:
        return
    os.makedirs(scratch)
    requirements = os.path.join(scratch, "requirements.txt")
    with open(requirements, "w") as f:
        f.write("\n".join(arguments))
    run_uv(uv, prefix, scratch, "compile", "--python", sys.executable,
           "--format", "pylock.toml", "--output-file", os.path.join(prefix, "pylock.toml"), requirements)

def install():
    """Runs no code of the package."""
    os.makedirs(scratch)
    requirements = os.path.join(scratch, "requirements.txt")
    with open(requirements, "w") as f:
        f.write(" --hash=sha256:".join(arguments))
    why = run_uv(uv, prefix, scratch, "install", "--python", sys.executable, "--prefix", prefix,
                 "--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement", requirements)
    if why:
        sys.exit("uv did not install: %s" % why)
    place, = found(prefix)
    os.symlink(os.path.relpath(place, prefix), os.path.join(prefix, "site"))
    # The same for all lists: a file that two packages have is the same in both.
    compile_all(prefix, lambda path: os.path.relpath(path, prefix))

def fonts():
    find_fonts(os.path.join(prefix, "fonts"), scratch)

{"lock": lock, "install": install, "fonts": fonts}[command]()
