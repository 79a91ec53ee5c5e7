import time
ready, told = os.pipe()
for _ in range(16):
    if os.fork() == 0:
        kept = bytearray(b"x") * (64 << 20)
        os.write(told, b"x")
        time.sleep(8)
        os._exit(0)
bad = 0
for _ in range(16):
    bad += os.wait()[1] != 0
if not bad:
    print("all children have it")
sys.exit(9 if bad else 0)
