package e2e

import (
	"bytes"
	"errors"
	"image/png"
	"os/exec"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// Real programs under the default limits: what people ask a model to write.

// wantLines checks a program's success and what it printed.
func wantLines(t *testing.T, res *llmsandbox.Result, lines ...string) {
	t.Helper()
	wantExit(t, res, 0)
	wantStdout(t, res, strings.Join(lines, "\n")+"\n")
}

// wantPicture checks that a file of the sandbox is a PNG with something in it.
func wantPicture(t *testing.T, sb *llmsandbox.Sandbox, path string) {
	t.Helper()
	data, err := sb.ReadFile(testContext(t), path)
	if err != nil {
		t.Fatalf("copy the picture out: %v", err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%d bytes that are no PNG: %v", len(data), err)
	}
	size := img.Bounds().Size()
	first, colours := img.At(0, 0), 0
	for y := range size.Y {
		for x := range size.X {
			if img.At(x, y) != first {
				colours++
			}
		}
	}
	if size.X < 100 || size.Y < 100 || colours < 500 {
		t.Errorf("a picture of %v with %d pixels that are not background", size, colours)
	}
}

// sciencePython is the interpreter of the host that has the packages, seen by the
// code of python runs as python3.
func sciencePython(t *testing.T) map[string]string {
	t.Helper()
	err := exec.Command("/usr/bin/python3", "-c", "import numpy, pandas, matplotlib").Run()
	require(t, err == nil, "/usr/bin/python3 has no numpy, pandas and matplotlib: make test-deps installs them")
	return map[string]string{"PATH": "/usr/bin:/bin", "PYTHONHOME": "", "LD_LIBRARY_PATH": ""}
}

func TestProgramNumpyPandasMatplotlib(t *testing.T) {
	sb := open(t, llmsandbox.Options{Language: "python", Env: sciencePython(t)})
	res := run(t, sb, `
import io
import numpy as np
import pandas as pd
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

rng = np.random.default_rng(7)
a = rng.standard_normal((300, 300))
x = np.arange(300.0)
assert np.allclose(np.linalg.solve(a, a @ x), x)
u, s, vt = np.linalg.svd(a)
assert np.allclose(u @ np.diag(s) @ vt, a)
w = np.linalg.eigvalsh(np.array([[2.0, 1], [1, 2]]))
print("eigenvalues", *w.round(6))

df = pd.read_csv(io.StringIO("city,year,n\nRome,2020,1\nOslo,2020,10\nRome,2021,2\nOslo,2021,20\n"))
print(df.groupby("city")["n"].agg(["sum", "mean"]).to_csv(), end="")
print(df.pivot(index="year", columns="city", values="n").loc[2021, "Oslo"])

fig, axes = plt.subplots(1, 2, figsize=(8, 4))
axes[0].plot(np.linspace(0, 6, 100), np.sin(np.linspace(0, 6, 100)), label="sin")
axes[0].legend()
axes[1].hist(rng.standard_normal(1000), bins=30)
fig.suptitle("two figures")
fig.savefig("figure.png")
`, nil)
	wantLines(t, res, "eigenvalues 1.0 3.0", "city,sum,mean", "Oslo,30,15.0", "Rome,3,1.5", "20")
	wantPicture(t, sb, "figure.png")
}

func TestProgramPython(t *testing.T) {
	sb := open(t, llmsandbox.Options{Language: "python"})
	for name, c := range map[string]struct {
		code  string
		lines []string
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
`, []string{"328350", "[4, 9]", "from a child", "400", "9"}},
		"threads": {`
import threading, queue
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(32) as p: print(sum(p.map(lambda n: n, range(1000))))
ts = [threading.Thread(target=threading.Event().wait, args=(0.01,)) for _ in range(60)]
[x.start() for x in ts]; [x.join() for x in ts]; print("joined")
`, []string{"499500", "joined"}},
		"subprocess": {`
import subprocess
print(subprocess.run("printf 'b\\na\\n' | sort", shell=True, capture_output=True, text=True).stdout.split())
p = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(p.communicate("through cat")[0])
print(subprocess.run(["sh", "-c", "kill -9 $$"]).returncode)
`, []string{"['a', 'b']", "through cat", "-9"}},
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
`, []string{"over loopback", "child", "45"}},
		"sqlite3": {`
import sqlite3
c = sqlite3.connect("db.sqlite"); c.execute("pragma journal_mode=wal")
c.execute("create table t(a integer primary key, b text)")
with c: c.executemany("insert into t(b) values(?)", [(str(n),) for n in range(1000)])
print(c.execute("select count(*), max(a) from t").fetchone()); c.close()
`, []string{"(1000, 1000)"}},
		"ssl, ctypes, hashlib, random": {`
import ssl, ctypes, hashlib, secrets, uuid, zoneinfo, datetime, tempfile, getpass, locale, os
print(len(ssl.create_default_context().get_ca_certs()) > 10)
print(ctypes.CDLL(None).getpid() == os.getpid(), ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda n: n + 1)(41))
print(hashlib.scrypt(b"x", salt=b"y", n=1024, r=8, p=1).hex()[:8], len(secrets.token_bytes(32)), uuid.uuid4().version)
print(datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Rome")).utcoffset())
with tempfile.TemporaryDirectory() as d: print(os.path.isdir(d), d.startswith("/tmp/"))
print(getpass.getuser(), os.path.expanduser("~"), os.cpu_count() > 0)
`, []string{"True", "True 42", "09a1b042 32 4", "2:00:00", "True True", "sandbox /tmp/home True"}},
		"loopback": {`
import http.server, threading, urllib.request, socket
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever, daemon=True).start()
open("page.txt", "w").write("served")
print(urllib.request.urlopen("http://localhost:%d/page.txt" % s.server_port).read().decode())
s.shutdown()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); u.sendto(b"udp", u.getsockname()); print(u.recv(9))
a = socket.socket(socket.AF_UNIX); a.bind("/tmp/s.sock"); a.listen(); b = socket.socket(socket.AF_UNIX); b.connect("/tmp/s.sock"); print("unix")
v = socket.socket(socket.AF_INET6); v.bind(("::1", 0)); print("v6")
`, []string{"served", "b'udp'", "unix", "v6"}},
		"signals and timers": {`
import signal, time, os, mmap, fcntl, select, resource
signal.signal(signal.SIGALRM, lambda *a: print("alarm")); signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(0.2)
m = mmap.mmap(-1, 1 << 20); m[0] = 65; print(m[:1])
r, w = os.pipe(); os.write(w, b"x"); p = select.epoll(); p.register(r, select.EPOLLIN); print(len(p.poll(1)))
f = open("lock", "w"); fcntl.flock(f, fcntl.LOCK_EX); print(resource.getrlimit(resource.RLIMIT_CORE))
`, []string{"alarm", "b'A'", "1", "(1, 1)"}},
	} {
		t.Run(name, func(t *testing.T) { wantLines(t, run(t, sb, c.code, nil), c.lines...) })
	}
}

func TestProgramJava(t *testing.T) {
	requirePrograms(t, "javac", "java")
	sb := open(t, llmsandbox.Options{Language: "java"})
	res := run(t, sb, `
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.stream.*;

public class Threads {
    sealed interface Shape permits Circle, Square {}
    record Circle(double r) implements Shape {}
    record Square(double a) implements Shape {}

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(16);
        List<Future<Integer>> all = new ArrayList<>();
        for (int i = 0; i < 100; i++) { int n = i; all.add(pool.submit(() -> n * n)); }
        int sum = 0;
        for (Future<Integer> f : all) sum += f.get();
        pool.shutdown();
        System.out.println(sum + " " + pool.awaitTermination(5, TimeUnit.SECONDS));
        System.out.println(IntStream.rangeClosed(1, 2_000_000).parallel().filter(n -> n % 3 == 0).count());
        AtomicLong counter = new AtomicLong();
        CountDownLatch done = new CountDownLatch(50);
        for (int i = 0; i < 50; i++) new Thread(() -> { counter.incrementAndGet(); done.countDown(); }).start();
        done.await();
        System.out.println(counter);
        System.out.println(CompletableFuture.supplyAsync(() -> 20).thenCombine(CompletableFuture.supplyAsync(() -> 22), Integer::sum).get());
        System.out.println(Stream.of("b", "a", "c").sorted().collect(Collectors.joining(",")));
        Path p = Files.createTempFile("x", ".txt");
        Files.writeString(p, "text\n");
        System.out.print(Files.readString(p));
        Process child = new ProcessBuilder("echo", "child").redirectErrorStream(true).start();
        System.out.print(new String(child.getInputStream().readAllBytes()));
        Map<Integer, byte[]> big = new HashMap<>();
        for (int i = 0; i < 200; i++) big.put(i, new byte[1 << 20]);
        System.out.println(big.size() + " MiB");
        Shape s = new Square(3);
        if (s instanceof Square q) System.out.println(q.a() * q.a());
    }
}
`, nil)
	wantLines(t, res, "328350 true", "666666", "50", "42", "a,b,c", "text", "child", "200 MiB", "9.0")
}

func TestProgramNode(t *testing.T) {
	requirePrograms(t, "node")
	sb := open(t, llmsandbox.Options{Language: "javascript"})
	res := run(t, sb, `
import { Worker } from 'node:worker_threads'
import { execFileSync } from 'node:child_process'
import { createHash, pbkdf2Sync } from 'node:crypto'
import fs from 'node:fs/promises'
import http from 'node:http'
import zlib from 'node:zlib'

const code = "const { parentPort, workerData } = require('worker_threads'); let s = 0; for (let i = 0; i <= workerData; i++) s += i; parentPort.postMessage(s)"
const work = n => new Promise((ok, bad) => new Worker(code, { eval: true, workerData: n }).on('message', ok).on('error', bad))
console.log((await Promise.all([10, 100, 1000, 10000].map(work))).join(' '))
const shared = new Int32Array(new SharedArrayBuffer(4))
Atomics.add(shared, 0, 5)
console.log(Atomics.load(shared, 0))
console.log(createHash('sha256').update('x').digest('hex').slice(0, 8), pbkdf2Sync('a', 'b', 1000, 4, 'sha512').length)
const server = http.createServer((q, r) => r.end('served ' + q.url)).listen(0, '127.0.0.1')
await new Promise(ok => server.on('listening', ok))
console.log(await new Promise(ok => http.get({ port: server.address().port, host: '127.0.0.1', path: '/p' }, r => r.on('data', d => ok('' + d)))))
server.close()
await fs.writeFile('f.txt', 'async')
console.log(await fs.readFile('f.txt', 'utf8'), zlib.gunzipSync(zlib.gzipSync('zip')) + '')
console.log(execFileSync('echo', ['child']) + '' .trim())
const wasm = new Uint8Array([0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11])
console.log((await WebAssembly.instantiate(wasm)).instance.exports.add(40, 2))
`, nil)
	wantLines(t, res, "55 5050 500500 50005000", "5", "2d711642 4", "served /p", "async zip", "child", "", "42")
}

func TestProgramGo(t *testing.T) {
	requirePrograms(t, "go")
	sb := open(t, llmsandbox.Options{Language: "go"})
	t.Run("goroutines", func(t *testing.T) {
		res := run(t, sb, `package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

type pair[K comparable, V any] struct { Key K; Value V }

func main() {
	var wg sync.WaitGroup
	var sum atomic.Int64
	jobs, results := make(chan int), make(chan int, 100)
	for range 8 {
		wg.Add(1)
		go func() { defer wg.Done(); for n := range jobs { sum.Add(int64(n)); results <- n * n } }()
	}
	for n := range 100 { jobs <- n }
	close(jobs); wg.Wait(); close(results)
	var all []int
	for r := range results { all = append(all, r) }
	slices.Sort(all)
	fmt.Println(sum.Load(), all[99])
	var mu sync.Mutex
	n := 0
	for range 1000 { wg.Add(1); go func() { defer wg.Done(); mu.Lock(); n++; mu.Unlock() }() }
	wg.Wait()
	fmt.Println(n)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	select { case <-ctx.Done(): fmt.Println(ctx.Err()); case <-time.After(5 * time.Second): fmt.Println("late") }
	b, _ := json.Marshal(pair[string, int]{"k", 1})
	fmt.Println(string(b), regexp.MustCompile("a+").FindString("xaay"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil { panic(err) }
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") }))
	r, err := http.Get("http://" + l.Addr().String())
	if err != nil { panic(err) }
	body, _ := io.ReadAll(r.Body)
	out, err := exec.Command("echo", "child").Output()
	fmt.Printf("%s %s%v\n", body, out, err)
}
`, nil)
		wantLines(t, res, "4950 9801", "1000", "context deadline exceeded", `{"Key":"k","Value":1} aa`, "served child", "<nil>")
	})
	t.Run("project", func(t *testing.T) {
		res := run(t, sb, "package main\n\nimport (\n\t\"fmt\"\n\t\"program/shapes\"\n)\n\nfunc main() { fmt.Println(helper(), shapes.Area(3)) }\n", &llmsandbox.RunOptions{
			Name: "main.go",
			Files: map[string][]byte{
				"helper.go":        []byte("package main\n\nfunc helper() string { return \"helped\" }\n"),
				"shapes/square.go": []byte("package shapes\n\nfunc Area(a int) int { return a * a }\n"),
			},
		})
		wantLines(t, res, "helped 9")
	})
}

func TestProgramCPP(t *testing.T) {
	requirePrograms(t, "g++")
	sb := open(t, llmsandbox.Options{Language: "cpp"})
	t.Run("threads and regex", func(t *testing.T) {
		res := run(t, sb, `
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <regex>
#include <thread>
#include <vector>
int main() {
  std::vector<std::thread> threads;
  std::atomic<long> sum{0};
  std::mutex m;
  std::map<int, int> seen;
  for (int i = 0; i < 16; i++)
    threads.emplace_back([&, i] { for (int n = 0; n < 1000; n++) sum += n; std::lock_guard<std::mutex> l(m); seen[i]++; });
  for (auto& t : threads) t.join();
  std::cout << sum << ' ' << seen.size() << '\n';
  auto f = std::async(std::launch::async, [] { std::vector<long> v(1000000, 2); return std::accumulate(v.begin(), v.end(), 0L); });
  std::cout << f.get() << '\n';
  std::regex re(R"((\w+)@(\w+)\.org)");
  std::smatch match;
  std::string text = "write to ann@example.org today";
  if (std::regex_search(text, match, re)) std::cout << match[1] << ' ' << match[2] << '\n';
  std::ofstream("out.txt") << "file";
  std::optional<std::uintmax_t> size = std::filesystem::file_size("out.txt");
  std::cout << size.value_or(0) << '\n';
  try { throw std::runtime_error("caught"); } catch (const std::exception& e) { std::cout << e.what() << '\n'; }
}
`, nil)
		wantLines(t, res, "7992000 16", "2000000", "ann example", "4", "caught")
	})
	t.Run("c++20", func(t *testing.T) {
		code := `
#include <concepts>
#include <iostream>
#include <ranges>
#include <span>
template <std::integral T> T twice(T n) { return 2 * n; }
int main() {
  int a[] = {1, 2, 3, 4, 5};
  for (int n : std::span(a) | std::views::filter([](int n) { return n % 2; }) | std::views::transform(twice<int>)) std::cout << n << ' ';
  std::cout << (1 <=> 2 < 0) << '\n';
}
`
		wantLines(t, run(t, sb, code, &llmsandbox.RunOptions{Standard: "c++20"}), "2 6 10 1")
		if res := run(t, sb, code, nil); res.Status != llmsandbox.StatusError || *res.ExitCode == 0 {
			t.Errorf("c++20 code compiled as the default, C++17: %+v", res)
		}
	})
}

func TestProgramR(t *testing.T) {
	requirePrograms(t, "Rscript")
	err := exec.Command("Rscript", "-e", "library(ggplot2)").Run()
	require(t, err == nil, "R has no ggplot2: make test-deps installs it")
	sb := open(t, llmsandbox.Options{Language: "r"})
	res := run(t, sb, `
library(ggplot2)
fit <- lm(mpg ~ wt, data = mtcars)
cat(round(coef(fit), 3), "\n")
m <- matrix(c(2, 1, 1, 3), 2)
cat(round(solve(m) %*% m, 9), "\n")
cat(tapply(mtcars$mpg, mtcars$cyl, function(x) round(mean(x), 2)), "\n")
ggsave("figure.png", ggplot(mtcars, aes(wt, mpg, colour = factor(cyl))) + geom_point() + geom_smooth(method = "lm", formula = y ~ x), width = 5, height = 4, dpi = 100)
png("base.png"); hist(mtcars$mpg); invisible(dev.off())
cat(unlist(parallel::mclapply(1:3, function(n) n^2, mc.cores = 2)), "\n")
`, nil)
	wantLines(t, res, "37.285 -5.344 ", "1 0 0 1 ", "26.66 19.74 15.1 ", "1 4 9 ")
	wantPicture(t, sb, "figure.png")
	wantPicture(t, sb, "base.png")
}

func TestProgramRuby(t *testing.T) {
	requirePrograms(t, "ruby")
	sb := open(t, llmsandbox.Options{Language: "ruby"})
	res := run(t, sb, `
require 'json'
require 'set'
require 'open3'
require 'socket'
fib = Fiber.new { a, b = 0, 1; loop { Fiber.yield a; a, b = b, a + b } }
puts 10.times.map { fib.resume }.join(' ')
lazy = Enumerator.new { |y| n = 0; loop { y << (n += 1) } }
puts lazy.lazy.select(&:even?).map { |n| n * n }.first(3).inspect
q = Queue.new
threads = 8.times.map { |n| Thread.new { q << n * n } }
threads.each(&:join)
puts 8.times.map { q.pop }.sum
puts Ractor.new(6) { |n| n * 7 }.take
out, status = Open3.capture2('sort', stdin_data: "b\na\n")
puts out.split.inspect, status.success?
r, w = IO.pipe
fork { r.close; w.write 'from a child' }
w.close; Process.wait
puts r.read
s = TCPServer.new('127.0.0.1', 0)
Thread.new { c = s.accept; c.puts 'over loopback'; c.close }
puts TCPSocket.new('127.0.0.1', s.addr[1]).gets
puts JSON.generate({ a: [1, nil] })
`, nil)
	wantLines(t, res, "0 1 1 2 3 5 8 13 21 34", "[4, 16, 36]", "140", "42", `["a", "b"]`, "true", "from a child", "over loopback", `{"a":[1,null]}`)
}

func TestProgramBash(t *testing.T) {
	sb := open(t, llmsandbox.Options{Language: "bash"})
	res := run(t, sb, `
set -euo pipefail
words=(pear apple fig apple)
declare -A count
for w in "${words[@]}"; do count[$w]=$(( ${count[$w]:-0} + 1 )); done
printf '%s\n' "${words[@]}" | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2, $1 }'
echo "${count[apple]} ${#words[@]} ${words[*]:1:2}"
diff <(seq 1 3) <(seq 1 3) && echo same
seq 1 100 | xargs -n 10 -P 4 echo | tr ' ' '\n' | paste -sd+ | tee sum.txt > /dev/null
echo $(( $(cat sum.txt) ))
tar czf - sum.txt | tar tzf -
( sleep 0.05; echo background ) & wait
[[ "ann@example.org" =~ ^([a-z]+)@ ]] && echo "${BASH_REMATCH[1]}"
find . -name '*.txt' -exec sed -n 's/^[0-9]*+.*/found/p' {} +
cat <<END | rev
cba
END
`, nil)
	wantLines(t, res, "apple 2", "2 4 apple fig", "same", "5050", "sum.txt", "background", "ann", "found", "abc")
}

// Runtimes that collect garbage must do so before the sandbox's memory is full.
func TestProgramGarbage(t *testing.T) {
	for lang, code := range map[string]string{
		"javascript": `
let live = []
for (let r = 0; r < 6; r++) { const next = []; for (let i = 0; i < 7e5; i++) next.push({ i, s: 'x' + i + r, a: [i, r] }); live = next }
console.log(live.length)
`,
		"java": `
import java.util.*;
class Garbage { public static void main(String[] a) {
  List<int[]> live = null;
  for (int r = 0; r < 20; r++) { live = new ArrayList<>(); for (int i = 0; i < 700000; i++) live.add(new int[32]); }
  System.out.println(live.size());
} }
`,
		"go": `package main
import "fmt"
func main() {
	var live [][]byte
	for r := 0; r < 10; r++ { live = nil; for i := 0; i < 700000; i++ { live = append(live, make([]byte, 128)) } }
	fmt.Println(len(live))
}
`,
	} {
		t.Run(lang, func(t *testing.T) {
			requirePrograms(t, map[string]string{"javascript": "node", "java": "javac", "go": "go"}[lang])
			wantLines(t, run(t, open(t, llmsandbox.Options{Language: lang}), code, nil), "700000")
		})
	}
}

// What one sandbox does to a prepared cache, no other one sees.
func TestProgramGoCacheIsPrivate(t *testing.T) {
	requirePrograms(t, "go")
	const sum = `cd /tmp/.cache/go-build && find . -type f ! -name trim.txt | sort | xargs cat | sha256sum; find . -type f | wc -l`
	const hello = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"
	state := func(sb *llmsandbox.Sandbox) string {
		t.Helper()
		res, err := sb.Shell(testContext(t), sum, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantExit(t, res, 0)
		return res.Stdout
	}
	bad := open(t, llmsandbox.Options{Language: "go", Limits: llmsandbox.Limits{Memory: 1 << 30}})
	before := state(bad)
	if strings.HasSuffix(before, "\n0\n") {
		t.Fatal("the cache is empty: it was not prepared")
	}
	_, err := bad.Shell(testContext(t), `cd /tmp/.cache/go-build
find . -type f -name '*-d' | head -200 | while read -r f; do echo poison > "$f"; done
find . -type f -name '*-a' | head -200 | xargs rm -f
chmod -R 777 . ; rm -rf 0*`, nil) // whether it may do all that is no matter
	if err != nil {
		t.Fatal(err)
	}
	if state(bad) == before {
		t.Fatal("the cache could not be changed, so this test shows nothing")
	}
	good := open(t, llmsandbox.Options{Language: "go"})
	if after := state(good); after != before {
		t.Errorf("the cache of another sandbox was %q, is %q", before, after)
	}
	wantLines(t, run(t, good, hello, nil), "hello")
}

// A cache that cannot be prepared costs nothing but time, and only once.
func TestProgramImageWithoutGo(t *testing.T) {
	image := testimage.Layout(t, map[string]v1.Image{"1": testimage.Busybox(t, nil)})
	b := local.New(local.Options{CacheDir: t.TempDir()}) // one that has not failed before
	for _, want := range []int{2, 0} {                   // the attempt and its failure, then nothing
		var said []string
		sb := open(t, llmsandbox.Options{Backend: b, Language: "go", Image: image, Progress: func(p backend.Progress) {
			if p.Stage == "prepare" {
				said = append(said, p.Message)
			}
		}})
		if len(said) != want || want > 0 && !strings.Contains(said[1], "going on without it") {
			t.Errorf("it says %q, want %d words of a cache", said, want)
		}
		if _, err := sb.Run(testContext(t), "package main\nfunc main() {}", nil); !errors.Is(err, llmsandbox.ErrToolchain) {
			t.Errorf("run: %v, want ErrToolchain", err)
		}
	}
}
