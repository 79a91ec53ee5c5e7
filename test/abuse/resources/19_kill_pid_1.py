import signal, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGSEGV, signal.SIGSTOP, signal.SIGKILL):
    try:
        os.kill(1, number)
        print(number.name, "sent")
    except OSError as e:
        print(number.name, errno.errorcode[e.errno])
time.sleep(0.2)
print("still here")
