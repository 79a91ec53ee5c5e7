package e2e

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox"
)

// TestFirstFork: the first program of a prepared sandbox has its memory to itself, and the next one is not forked
// before it is asked for.
func TestFirstFork(t *testing.T) {
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(page)
	if err := unix.Madvise(page, unix.MADV_POPULATE_WRITE); err != nil {
		t.Skip("needs Linux 5.14: ", err)
	}
	sb := open(t, llmsandbox.Options{BestEffort: true})
	if err := sb.Prepare(testContext(t)); err != nil {
		t.Fatal(err)
	}
	number := func(code, language string) int {
		t.Helper()
		res := run(t, sb, code, &llmsandbox.RunOptions{Language: language})
		n, err := strconv.Atoi(strings.TrimSpace(res.Stdout))
		if err != nil {
			t.Fatalf("%s, want a number", res)
		}
		return n
	}
	const (
		shared  = `print([line.split()[1] for line in open("/proc/self/smaps_rollup") if line.startswith("Shared_Dirty:")][0])`
		pythons = "grep -l python /proc/[0-9]*/comm | wc -l"
	)
	if n := number(pythons, "bash"); n != 3 {
		t.Errorf("%d interpreters before a program, want 3: one that forks, the next program, and what is between them", n)
	}
	first := number(shared, "python")
	if n := number(pythons, "bash"); n != 1 {
		t.Errorf("%d interpreters after the first program, want 1", n)
	}
	if second := number(shared, "python"); first*4 > second {
		t.Errorf("the first program shares %d KiB of its memory, and the second %d: want less than a fourth of that", first, second)
	}
	// What copied the memory has gone.
	const classes = "import _ctypes; print(_ctypes._SimpleCData.__subclasses__())"
	prepared := open(t, llmsandbox.Options{BestEffort: true})
	if err := prepared.Prepare(testContext(t)); err != nil {
		t.Fatal(err)
	}
	wantStdout(t, run(t, prepared, classes, nil), run(t, open(t, llmsandbox.Options{BestEffort: true}), classes, nil).Stdout)
}
