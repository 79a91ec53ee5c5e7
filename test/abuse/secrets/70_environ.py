print("own environment:")
for name, value in sorted(os.environ.items()):
    print(name, value)
for pid in pids():
    for name in ("environ", "cmdline"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as f:
                print(pid, name, f.read().replace(b"\0", b" ").decode(errors="replace"))
        except OSError as e:
            print(pid, name, errno.errorcode[e.errno])
print("end")
