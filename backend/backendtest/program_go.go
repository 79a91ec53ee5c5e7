package backendtest

import (
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) programGo(t *testing.T) {
	sb := s.openWith(t, llmsandbox.Options{Language: "go"}, "go")
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

// What one sandbox does to a prepared cache, no other one sees.
func (s *suite) programGoCacheIsPrivate(t *testing.T) {
	s.has(t, PreparedCaches)
	const sum = `cd /tmp/.cache/go-build && find -L . -type f ! -name trim.txt | sort | xargs cat | sha256sum; find -L . -type f | wc -l`
	const hello = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"
	state := func(sb *llmsandbox.Sandbox) string {
		t.Helper()
		res, err := sb.Shell(testContext(t), here(sb, sum), nil)
		if err != nil {
			t.Fatal(err)
		}
		wantExit(t, res, 0)
		return res.Stdout
	}
	bad := s.openWith(t, llmsandbox.Options{Language: "go", Limits: llmsandbox.Limits{Memory: 1 << 30}}, "go")
	before := state(bad)
	if strings.HasSuffix(before, "\n0\n") {
		t.Fatalf("the cache is empty: it was not prepared: %.300q, want before not ending in \"\\n0\\n\"", before)
	}
	_, err := bad.Shell(testContext(t), here(bad, `cd /tmp/.cache/go-build || exit 1
find -L . -type f -name '*-d' | head -200 | while read -r f; do echo poison > "$f"; done
find -L . -type f -name '*-a' | head -200 | xargs rm -f
chmod -R 777 . ; rm -rf 0*`), nil) // whether it may do all that is no matter
	if err != nil {
		t.Fatal(err)
	}
	if state(bad) == before {
		t.Fatalf("the cache could not be changed, so this test shows nothing: state(bad) = %v, want other than %v", state(bad), before)
	}
	good := s.open(t, llmsandbox.Options{Language: "go"})
	if after := state(good); after != before {
		t.Errorf("the cache of another sandbox was %q, is %q", before, after)
	}
	wantLines(t, run(t, good, hello, nil), "hello")
}
