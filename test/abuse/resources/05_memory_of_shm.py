block = b"x" * (1 << 20)
try:
    with open("/dev/shm/abuse", "wb", buffering=0) as f:
        for _ in range(4096):
            f.write(block)
    print("no end of memory")
except OSError as e:
    print("stopped by", errno.errorcode[e.errno])
