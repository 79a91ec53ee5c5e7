block = b"x" * (1 << 20)
try:
    with open("abuse-file", "wb", buffering=0) as f:
        for _ in range(4096):
            if f.write(block) < len(block):
                f.write(block)
    print("no end of disk")
except OSError as e:
    print("stopped by", errno.errorcode[e.errno])
os.unlink("abuse-file")
with open("small", "wb") as f:
    f.write(block)
print("room again")
