n = 0
try:
    for n in range(5_000_000):
        os.dup(0)
    print("no end of descriptors")
except OSError as e:
    os.closerange(3, 50)
    print("stopped after", n, "by", errno.errorcode[e.errno])
