sys.stdout.write("x" * (100 << 20))
sys.stdout.flush()
os.write(2, b"line was taken\n")
