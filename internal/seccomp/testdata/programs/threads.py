import asyncio, concurrent.futures, ctypes, hashlib, json, multiprocessing, os, socket, sqlite3, ssl, subprocess, tempfile, threading, uuid

def square(n):
    return n * n

async def child():
    p = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
    out, _ = await p.communicate()
    assert out == b"hi\n"

if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(square, range(100))) == 328350
    with multiprocessing.Pool(2) as pool:
        assert pool.map(square, [3, 4]) == [9, 16]
    assert multiprocessing.get_context("spawn").Value("i", 5).value == 5
    q = multiprocessing.Queue()
    p = multiprocessing.Process(target=q.put, args=(7,))
    p.start(); assert q.get() == 7; p.join()
    from multiprocessing import shared_memory
    m = shared_memory.SharedMemory(create=True, size=4096); m.close(); m.unlink()
    asyncio.run(child())
    assert subprocess.run("echo a | wc -c", shell=True, capture_output=True).stdout.strip() == b"2"
    if "NO_SOCKETS" not in os.environ:
        s = socket.create_server(("127.0.0.1", 0))
        c = socket.create_connection(s.getsockname()); c.close(); s.close()
        assert socket.if_nameindex()
    socket.getaddrinfo("localhost", 80)
    a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
    db = sqlite3.connect(os.path.join(tempfile.mkdtemp(), "x.db")); db.execute("create table t(a)"); db.commit()
    ssl.create_default_context(); hashlib.sha256(os.urandom(9)); uuid.uuid4()
    ctypes.CDLL(None).getpid()
    os.memfd_create("x"); os.sched_getaffinity(0); os.mkfifo("fifo")
    print("works")
