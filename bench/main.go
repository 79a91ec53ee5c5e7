// Command bench measures sandboxes against the bare interpreter and against other
// ways to isolate it, all in one run, and prints the ratios. Its figures are for
// comparing, not for passing: no test depends on them.
//
// Each round runs every contender once, one after another, so that a machine that
// gets faster or slower meanwhile does so for all of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
)

func main() {
	rounds := flag.Int("n", 40, "rounds of the short measurements")
	only := flag.String("only", "", "measure only the sections whose name contains this")
	command := flag.String("command", "", "the llmsandbox command to measure (default: built from ./cmd/llmsandbox)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, *rounds, *only, *command); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type section struct {
	name string
	run  func(context.Context, *env, int) error
}

func bench(ctx context.Context, rounds int, only, command string) error {
	e, err := newEnv(ctx, command)
	if err != nil {
		return err
	}
	defer e.close()
	fmt.Printf("%s, %d CPUs, %s, uid %d, python %s\n", kernel(), runtime.NumCPU(), runtime.Version(), os.Getuid(), e.python)
	for _, s := range []section{
		{"one-shot", oneShots},
		{"run in an open sandbox", openRuns},
		{"many at once", manyAtOnce},
		{"memory of an idle sandbox", idleMemory},
		{"output", outputs},
		{"files", files},
	} {
		if !strings.Contains(s.name, only) {
			continue
		}
		fmt.Printf("\n## %s\n", s.name)
		if err := s.run(ctx, e, rounds); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return "Linux " + strings.TrimSpace(string(release))
}
