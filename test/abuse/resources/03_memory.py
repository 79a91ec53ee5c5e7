kept = []
for _ in range(4096):
    kept.append(bytearray(b"x") * (1 << 20))
print("no end of memory")
