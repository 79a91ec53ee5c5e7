package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox"
)

func outputs(ctx context.Context, e *env, rounds int) error {
	sb, err := open(ctx)
	if err != nil {
		return err
	}
	defer sb.Close()
	for _, mb := range []int{40, 1000} {
		code := fmt.Sprintf("import os\nb = b'x' * (1 << 20)\nfor i in range(%d): os.write(1, b)", mb)
		err := compare(ctx, max(rounds/10, 3),
			program(fmt.Sprintf("%d MB from bare python to a pipe", mb), "sh", "-c", `"$0" -c "$1" | cat >/dev/null`, e.python, code),
			timed(fmt.Sprintf("%d MB through Run to a writer", mb), func(ctx context.Context) error {
				return ok(sb.Run(ctx, code, &llmsandbox.RunOptions{Stdout: io.Discard}))
			}))
		if err != nil {
			return err
		}
	}
	const prints = "for i in range(200000): print(i)"
	err = compare(ctx, max(rounds/4, 3),
		program("200,000 prints of python3 -u to cat", "sh", "-c", `"$0" -u -c "$1" | cat >/dev/null`, e.python, prints),
		program("200,000 prints of llmsandbox run to cat", "sh", "-c", `"$0" run -l python -c "$1" | cat >/dev/null`, e.command, prints))
	if err != nil {
		return err
	}
	if peak := peakMemory(); peak != "" {
		fmt.Printf("%s was the most memory this process has had by now\n", peak)
	}
	return nil
}

func files(ctx context.Context, e *env, rounds int) error {
	sb, err := open(ctx)
	if err != nil {
		return err
	}
	defer sb.Close()
	from, to := filepath.Join(e.dir, "100mb"), filepath.Join(e.dir, "back")
	if err := os.WriteFile(from, make([]byte, 100<<20), 0o600); err != nil {
		return err
	}
	return compare(ctx, max(rounds/8, 3),
		program("cp of 100 MB", "cp", from, to),
		timed("100 MB in", func(ctx context.Context) error { _, err := sb.CopyIn(ctx, from, "/sandbox/100mb"); return err }),
		timed("100 MB out", func(ctx context.Context) error { _, err := sb.CopyOut(ctx, "/sandbox/100mb", to); return err }),
	)
}

// peakMemory is this process's largest resident size as the kernel tells it, or "".
func peakMemory() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(status)) {
		if peak, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(peak)
		}
	}
	return ""
}
