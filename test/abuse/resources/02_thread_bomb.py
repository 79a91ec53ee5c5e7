import threading
threading.stack_size(1 << 16)
stop, n = threading.Event(), 0
try:
    for n in range(20000):
        threading.Thread(target=stop.wait, daemon=True).start()
    print("no end of threads")
except (RuntimeError, MemoryError):
    print("stopped after", n, "threads")
stop.set()
