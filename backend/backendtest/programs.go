package backendtest

import (
	"bytes"
	"image/png"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

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
		t.Errorf("a picture of %v with %d pixels that are not background, want X >= 100, Y >= 100, colours >= 500", size, colours)
	}
}

func (s *suite) programBash(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{Language: "bash"})
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

func (s *suite) programRuby(t *testing.T) {
	sb := s.openWith(t, llmsandbox.Options{Language: "ruby"}, "ruby")
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
