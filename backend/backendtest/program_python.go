package backendtest

import (
	"testing"
)

func (s *suite) programPython(t *testing.T) {
	sb := s.shared(t)
	for name, c := range map[string]struct {
		code  string
		lines []string
		needs []Feature
	}{
		"multiprocessing": {`
from multiprocessing import Pool, Queue, Process, shared_memory, Lock, Value
from concurrent.futures import ProcessPoolExecutor
def square(n): return n * n
def put(q): q.put("from a child")
def add(v):
    for _ in range(100):
        with v.get_lock(): v.value += 1
if __name__ == "__main__":
    with Pool(4) as p: print(sum(p.map(square, range(100))))
    with ProcessPoolExecutor(2) as p: print(list(p.map(square, [2, 3])))
    q = Queue(); c = Process(target=put, args=(q,)); c.start(); print(q.get()); c.join()
    v = Value("i", 0); cs = [Process(target=add, args=(v,)) for _ in range(4)]
    [c.start() for c in cs]; [c.join() for c in cs]; print(v.value)
    m = shared_memory.SharedMemory(create=True, size=16); m.buf[0] = 9; print(m.buf[0]); m.close(); m.unlink()
`, []string{"328350", "[4, 9]", "from a child", "400", "9"}, []Feature{SharedMemory}},
		"threads": {`
import threading, queue
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(32) as p: print(sum(p.map(lambda n: n, range(1000))))
ts = [threading.Thread(target=threading.Event().wait, args=(0.01,)) for _ in range(60)]
[x.start() for x in ts]; [x.join() for x in ts]; print("joined")
`, []string{"499500", "joined"}, nil},
		"subprocess": {`
import subprocess
print(subprocess.run("printf 'b\\na\\n' | sort", shell=True, capture_output=True, text=True).stdout.split())
p = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(p.communicate("through cat")[0])
print(subprocess.run(["sh", "-c", "kill -9 $$"]).returncode)
`, []string{"['a', 'b']", "through cat", "-9"}, nil},
		"asyncio": {`
import asyncio
async def echo(r, w):
    w.write(await r.readline()); await w.drain(); w.close()
async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    r, w = await asyncio.open_connection(*server.sockets[0].getsockname())
    w.write(b"over loopback\n"); print((await r.readline()).decode().strip()); w.close()
    p = await asyncio.create_subprocess_exec("echo", "child", stdout=asyncio.subprocess.PIPE)
    print((await p.communicate())[0].decode().strip())
    print(sum(await asyncio.gather(*(asyncio.to_thread(lambda n=n: n) for n in range(10)))))
    server.close()
asyncio.run(main())
`, []string{"over loopback", "child", "45"}, []Feature{Servers}},
		"sqlite3": {`
import sqlite3
c = sqlite3.connect("db.sqlite"); c.execute("pragma journal_mode=wal")
c.execute("create table t(a integer primary key, b text)")
with c: c.executemany("insert into t(b) values(?)", [(str(n),) for n in range(1000)])
print(c.execute("select count(*), max(a) from t").fetchone()); c.close()
`, []string{"(1000, 1000)"}, nil},
		"ssl, ctypes, hashlib, random": {`
import ssl, ctypes, hashlib, secrets, uuid, datetime, tempfile, getpass, locale, os
print(ssl.create_default_context().verify_mode.name)
print(ctypes.CDLL(None).getpid() == os.getpid(), ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda n: n + 1)(41))
print(hashlib.scrypt(b"x", salt=b"y", n=1024, r=8, p=1).hex()[:8], len(secrets.token_bytes(32)), uuid.uuid4().version)
print(datetime.datetime(2024, 7, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2))).utcoffset())
with tempfile.TemporaryDirectory() as d: print(os.path.isdir(d), d.startswith("/tmp/"))
print(getpass.getuser() != "", os.path.expanduser("~") == os.environ["HOME"], os.access(os.environ["HOME"], os.W_OK), os.cpu_count() > 0)
`, []string{"CERT_REQUIRED", "True 42", "09a1b042 32 4", "2:00:00", "True True", "True True True True"}, nil},
		"loopback": {`
import http.server, threading, urllib.request, socket
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever, daemon=True).start()
open("page.txt", "w").write("served")
print(urllib.request.urlopen("http://localhost:%d/page.txt" % s.server_port).read().decode())
s.shutdown()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); u.sendto(b"udp", u.getsockname()); print(u.recv(9))
a = socket.socket(socket.AF_UNIX); a.bind("/tmp/s.sock"); a.listen(); b = socket.socket(socket.AF_UNIX); b.connect("/tmp/s.sock"); print("unix")
`, []string{"served", "b'udp'", "unix"}, []Feature{Servers}},
		"signals and timers": {`
import signal, time, os, mmap, fcntl, select, resource
signal.signal(signal.SIGALRM, lambda *a: print("alarm")); signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(0.2)
m = mmap.mmap(-1, 1 << 20); m[0] = 65; print(m[:1])
r, w = os.pipe(); os.write(w, b"x"); p = select.epoll(); p.register(r, select.EPOLLIN); print(len(p.poll(1)))
f = open("lock", "w"); fcntl.flock(f, fcntl.LOCK_EX); print(resource.getrlimit(resource.RLIMIT_CORE))
`, []string{"alarm", "b'A'", "1", "(1, 1)"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s.has(t, c.needs...)
			wantLines(t, run(t, sb, c.code, nil), c.lines...)
		})
	}
	t.Run("loopback of IPv6", func(t *testing.T) {
		s.has(t, IPv6Loopback)
		wantLines(t, run(t, sb, `
import socket
v = socket.socket(socket.AF_INET6); v.bind(("::1", 0)); print("v6")
`, nil), "v6")
	})
}
