import ctypes, shutil, subprocess

status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
holds("not root", os.getuid() != 0 and os.geteuid() != 0 and os.getgid() != 0)
PR_GET_NO_NEW_PRIVS = 39 # not every kernel has it in its status
holds("no_new_privs", ctypes.CDLL(None).prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
# The bounding set is not among these: under no_new_privs nothing can be gained from it.
for field in ("CapInh", "CapPrm", "CapEff"):
    holds(field + " is empty", int(status[field], 16) == 0)
# It is a part of two of those, and not every kernel has it in its status.
holds("CapAmb is empty", int(status.get("CapAmb", "0"), 16) == 0)
holds("no group of root", 0 not in os.getgroups())
attempt("setuid 0", lambda: os.setuid(0))
attempt("setgid 0", lambda: os.setgid(0))
attempt("setgroups 0", lambda: os.setgroups([0]))
attempt("setresuid 0", lambda: os.setresuid(0, 0, 0))
with open("abuse-file", "w"):
    pass
attempt("chown to root", lambda: os.chown("abuse-file", 0, 0))

for program, args in (("su", ["-c", "id", "root"]), ("sudo", ["-n", "id"]), ("pkexec", ["id"])):
    path = shutil.which(program)
    if path:
        r = subprocess.run([path, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
        holds(program, b"uid=0" not in r.stdout)
# A setuid copy runs as its owner: the code itself.
copy = os.path.abspath("abuse-id")
shutil.copy(shutil.which("id"), copy)
try:
    os.chmod(copy, 0o6755)
except OSError:
    pass
r = subprocess.run([copy, "-u"], capture_output=True)
holds("a setuid program is inert", r.stdout.strip() == str(os.getuid()).encode())
say("end", "end")
