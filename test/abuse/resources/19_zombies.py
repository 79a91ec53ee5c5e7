n = 0
try:
    for n in range(20000):
        if os.fork() == 0:
            os._exit(0)
    print("no end of zombies")
except OSError as e:
    print("stopped by", errno.errorcode[e.errno], "after", n)
print("still here")
