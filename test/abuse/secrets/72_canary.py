import stat
# Assembled, so that this program is not what it looks for.
canary = "-".join(["llmsandbox", "canary", "5d1f0c9b"]).encode()
toolchains = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/proc", "/sys", "/dev")
searched = 0
for root, dirs, names in os.walk("/"):
    dirs[:] = [d for d in dirs if os.path.join(root, d) not in toolchains]
    for name in names:
        path = os.path.join(root, name)
        try:
            if canary in path.encode(errors="replace"):
                print("FOUND in the name", path)
            st = os.lstat(path)
            if not stat.S_ISREG(st.st_mode) or st.st_size > 4 << 20:
                continue
            searched += 1
            with open(path, "rb") as f:
                if canary in f.read():
                    print("FOUND in", path)
        except OSError:
            pass
        if searched > 100000:
            break
for directory in ("/root", "/home", "/tmp", "/var/tmp", "/run", "/mnt", "/srv", "/proc/1/cwd", "/proc/1/root/root", "/proc/1/root/home"):
    try:
        for name in os.listdir(directory):
            try:
                with open(os.path.join(directory, name), "rb") as f:
                    if canary in f.read(1 << 20):
                        print("FOUND in", directory, name)
            except OSError:
                pass
    except OSError:
        pass
print("searched", searched, "files")
