try:
    with open("sparse", "wb") as f:
        f.truncate(1 << 40)
    print("sparse file of", os.stat("sparse").st_size)
except OSError as e:
    print("no sparse file:", errno.errorcode[e.errno])
