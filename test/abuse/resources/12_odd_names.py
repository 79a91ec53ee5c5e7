os.mkdir("odd")
names = [b"x" * 255, b"new\nline", b"\xff\xfe invalid", b"tab\tname", b" ", b"-rf", b"\x1b[2J", "\u202egnp.exe".encode(), b"a..b", b"...", b"'; rm -rf x", b"$(id)", b"C:\\x", b"nul"]
for name in names:
    with open(b"odd/" + name, "wb") as f:
        f.write(name)
print("named", len(os.listdir(b"odd")))
