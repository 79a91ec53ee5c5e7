package e2e

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox"
)

// TestForksCopyAhead: a program that waits to be asked for has its memory to itself.
func TestForksCopyAhead(t *testing.T) {
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
	const pythons = "grep -l python /proc/[0-9]*/comm | wc -l"
	res := run(t, sb, pythons, &llmsandbox.RunOptions{Language: "bash"})
	if strings.TrimSpace(res.Stdout) != "3" {
		t.Errorf("interpreters before a program: %s, want 3: one that forks, the next program, and what is between them", res)
	}
	const memory = `
fields = [line.split() for line in open("/proc/self/smaps_rollup")]
print(*[field[1] for field in fields if field[0] in ("Shared_Dirty:", "Private_Dirty:")])`
	for _, program := range []string{"first", "second"} {
		res := run(t, sb, memory, nil)
		var shared, own int
		if _, err := fmt.Sscan(res.Stdout, &shared, &own); err != nil {
			t.Fatalf("%s: %v", res, err)
		}
		if shared*10 > own {
			t.Errorf("the %s program shares %d KiB of its memory and has %d KiB to itself: want less than a tenth of that", program, shared, own)
		}
	}
	// What copied the memory has gone.
	const classes = "import _ctypes; print(_ctypes._SimpleCData.__subclasses__())"
	prepared := open(t, llmsandbox.Options{BestEffort: true})
	if err := prepared.Prepare(testContext(t)); err != nil {
		t.Fatal(err)
	}
	wantStdout(t, run(t, prepared, classes, nil), run(t, open(t, llmsandbox.Options{BestEffort: true}), classes, nil).Stdout)
}
