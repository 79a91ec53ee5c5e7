fd = os.memfd_create("abuse")
block = b"x" * (1 << 20)
for _ in range(4096):
    os.write(fd, block)
print("no end of memory")
