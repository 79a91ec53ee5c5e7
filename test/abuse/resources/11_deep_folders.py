depth = 0
try:
    for depth in range(5000):
        os.mkdir("d")
        os.chdir("d")
except OSError as e:
    print(errno.errorcode[e.errno], end=" ")
print("deep:", depth)
