import errno, json, os, sys

def say(what, result):
    print(json.dumps({"case": CASE, "what": what, "result": result}), flush=True)

def attempt(what, f):
    """"ok" says that the attack succeeded."""
    try:
        f()
        say(what, "ok")
    except OSError as e:
        say(what, errno.errorcode.get(e.errno, str(e)))

def holds(what, good):
    say(what, "EPERM" if good else "ok")

def pids():
    """Where /proc cannot be listed, they are found by their numbers."""
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except PermissionError:
        return [str(n) for n in range(1, 1 << 16) if os.path.isdir(f"/proc/{n}")]

def open_for(path, flags):
    os.close(os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC))

