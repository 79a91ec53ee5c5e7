
# Makes environments: virtual environments that see nothing of what the interpreter has already.
#   environment.py lock DIR SCRATCH UV [PIP-OPTION...] -- REQUIREMENT...
#   environment.py install DIR SCRATCH UV [PIP-OPTION...] -- LOCK
import json, re, venv

import pip

command, prefix, scratch, uv = sys.argv[1:5]
split = sys.argv.index("--")
options, arguments = sys.argv[5:split], sys.argv[split + 1:]
minor = "%d.%d" % sys.version_info[:2]
# The interpreter's own pip, and nothing else that is installed beside it.
tools = os.path.join(scratch, "tools")
os.makedirs(tools)
os.symlink(os.path.dirname(pip.__file__), os.path.join(tools, "pip"))

def make(directory):
    venv.EnvBuilder(symlinks=True).create(directory)
    return os.path.join(directory, "bin", "python")

def run_pip(python, *arguments):
    done = subprocess.run([python, "-m", "pip", "install", *arguments], env=dict(os.environ, PYTHONPATH=tools))
    if done.returncode != 0:
        sys.exit(done.returncode)

def lock():
    if [int(n) for n in pip.__version__.split(".")[:2]] < [22, 2]:
        sys.exit("pip %s cannot lock an environment: use 22.2 or newer" % pip.__version__)
    report = os.path.join(scratch, "report.json")
    run_pip(make(os.path.join(scratch, "venv")), "--dry-run", "--report", report, *options, "--", *arguments)
    with open(report) as f:
        found = [item["metadata"] for item in json.load(f)["install"]]
    packages = [{"name": re.sub("[-_.]+", "-", m["name"]).lower(), "version": m["version"], "python": [minor]} for m in found]
    with open(os.path.join(prefix, "lock.json"), "w") as f:
        json.dump(packages, f)

def move(name, python):
    """Has a command start the interpreter beside it, wherever that is."""
    if os.path.islink(name) or not os.path.isfile(name):
        return
    with open(name, "rb") as f:
        text = f.read()
    line = b"#!" + os.fsencode(python) + b"\n"
    if text.startswith(line):
        with open(name, "wb") as f:
            f.write(b"#!/bin/sh\n'''exec' \"${0%/*}/python\" \"$0\" \"$@\"\n' '''\n" + text[len(line):])

def install():
    with open(arguments[0]) as f:
        packages = json.load(f)
    known = sorted({int(v.split(".")[1]) for p in packages for v in p.get("python", [])})
    packages = [p for p in packages if minor in p.get("python", [minor])]
    if not packages:
        sys.exit("the environment is not locked for Python %s, only for %s" % (minor, ", ".join("3.%d" % n for n in known)))
    requirements = os.path.join(scratch, "requirements.txt")
    with open(requirements, "w") as f:
        for p in packages:
            f.write("%s==%s%s\n" % (p["name"], p["version"], "".join(" --hash=sha256:" + h for h in p.get("sha256", []))))
    python = make(prefix)
    hashes = ["--require-hashes"] if any(p.get("sha256") for p in packages) else []
    common = ["--no-deps", "--requirement", requirements, *hashes]
    if not install_with_uv(uv, prefix, scratch, "--python", python, *common):
        run_pip(make(prefix), "--no-compile", "--no-warn-script-location", *common, *options)
    site_dir = os.path.join(prefix, "lib", "python" + minor, "site-packages")
    if not os.path.lexists(os.path.join(site_dir, "pip")):
        os.symlink(os.path.dirname(pip.__file__), os.path.join(site_dir, "pip"))
        for name in "pip", "pip3":
            with open(os.path.join(prefix, "bin", name), "w") as f:
                f.write("#!%s\nimport sys\nfrom pip._internal.cli.main import main\nsys.exit(main())\n" % python)
                os.chmod(f.fileno(), 0o755)
    if not prefix.startswith("/tmp/."):  # it is used elsewhere
        for name in glob.glob(os.path.join(prefix, "bin", "*")):
            move(name, python)
    # The environment is read-only: pip installs for the sandbox's user instead, as without a virtual environment.
    with open(os.path.join(site_dir, "user.pth"), "w") as f:
        f.write("import site; site.ENABLE_USER_SITE = True; site.addusersitepackages(set())\n")
    finish(prefix, site_dir, scratch)

{"lock": lock, "install": install}[command]()
