import signal, time
try:
    os.kill(-1, signal.SIGKILL)
except OSError as e:
    print(errno.errorcode[e.errno])
time.sleep(0.2)
