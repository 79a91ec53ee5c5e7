import signal
children = []
try:
    for _ in range(20000):
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        children.append(pid)
    print("no end of processes")
except OSError as e:
    print("stopped by", errno.errorcode[e.errno], "after", len(children))
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
