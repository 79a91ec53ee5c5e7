
# Installs libraries into a directory that any interpreter of the same version can use.
#   libraries.py DIR SCRATCH UV [PIP-OPTION...] -- REQUIREMENT...
# What the interpreter already has is never touched: pip runs in a virtual environment that
# only sees it, for tools that build packages. In an environment it sees that and nothing else.
import site, sysconfig, venv

prefix, scratch, uv = sys.argv[1:4]
split = sys.argv.index("--")
options, requirements = sys.argv[4:split], sys.argv[split + 1:]

alone = "SANDBOX_ENVIRONMENT" in os.environ
venv.EnvBuilder(system_site_packages=not alone, symlinks=True).create(scratch)
python = os.path.join(scratch, "bin", "python")
seen = [p for p in site.getsitepackages() + os.environ.get("PYTHONPATH", "").split(":") if p]
# An environment in an environment sees the system's packages and not its parent's.
pth = sysconfig.get_path("purelib", "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix", {"base": scratch, "platbase": scratch})
with open(os.path.join(pth, "parent.pth"), "w") as f:
    f.write("\n".join(p for p in seen if os.path.isdir(p)))
env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

# With uv, nothing that is elsewhere counts as installed.
alike = "--ignore-installed" in options
if not (alike and install_with_uv(uv, prefix, scratch, "--python", python, "--prefix", prefix, "--", *requirements)):
    pip = [python, "-m", "pip", "install", "--prefix", prefix, "--no-compile", "--no-warn-script-location"]
    done = subprocess.run(pip + options + ["--"] + requirements, env=env)
    if done.returncode != 0:
        sys.exit(done.returncode)

# One name for the packages, whatever the version is called.
places = found(prefix)
site_dir = os.path.join(prefix, "site")
if len(places) == 1:
    os.symlink(os.path.relpath(places[0], prefix), site_dir)
else:
    os.mkdir(site_dir)
    for place in places:  # pure and native packages apart
        for name in os.listdir(place):
            if not os.path.lexists(os.path.join(site_dir, name)):
                os.symlink(os.path.relpath(os.path.join(place, name), site_dir), os.path.join(site_dir, name))
# Commands start the interpreter that everything else starts.
ours = b"#!" + os.fsencode(python)
for name in glob.glob(os.path.join(prefix, "bin", "*")):
    if os.path.islink(name) or not os.path.isfile(name):
        continue
    with open(name, "rb") as f:
        text = f.read()
    if text.startswith(ours):
        with open(name, "wb") as f:
            f.write(b"#!" + os.fsencode(sys.executable) + text[len(ours):])

finish(prefix, site_dir, scratch)
