import mmap
m = mmap.mmap(-1, 4 << 30)
for at in range(0, 4 << 30, 4096):
    m[at] = 1
print("no end of memory")
