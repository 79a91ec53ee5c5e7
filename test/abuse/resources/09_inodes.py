n = 0
try:
    for d in range(5000):
        os.mkdir(f"d{d}")
        for n in range(1000):
            os.close(os.open(f"d{d}/{n}", os.O_CREAT | os.O_WRONLY))
    print("no end of files")
except OSError as e:
    print("stopped by", errno.errorcode[e.errno], "after", d * 1000 + n)
