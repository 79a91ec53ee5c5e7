import fcntl, socket
total, kept = 0, []
try:
    while total < 4 << 30:
        r, w = os.pipe()
        kept += [r, w]
        try:
            fcntl.fcntl(w, 1031, 1 << 20)  # F_SETPIPE_SZ
        except OSError:
            pass
        os.set_blocking(w, False)
        try:
            while True:
                total += os.write(w, b"x" * 65536)
        except BlockingIOError:
            pass
        a, b = socket.socketpair()
        kept += [a, b]
        a.setblocking(False)
        try:
            while True:
                total += a.send(b"x" * 65536)
        except BlockingIOError:
            pass
    print("no end of buffers")
except OSError as e:
    print("stopped by", errno.errorcode[e.errno], "after", total >> 20, "MiB")
