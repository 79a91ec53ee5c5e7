package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/llmsandbox/llmsandbox"
)

// libraries compares sandboxes without libraries to those with a list that is cached.
func libraries(ctx context.Context, _ *env, rounds int) error {
	dir, err := os.MkdirTemp("", "llmsandbox-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := wheel(filepath.Join(dir, "benchlib-1.0-py3-none-any.whl")); err != nil {
		return fmt.Errorf("make a package: %w", err)
	}
	with := llmsandbox.Options{BestEffort: true, Libraries: []string{"benchlib"}, Install: llmsandbox.InstallOptions{Local: dir}}
	do := func(o llmsandbox.Options, code string) func(context.Context) error {
		return func(ctx context.Context) error {
			sb, err := llmsandbox.Open(ctx, &o)
			if err != nil {
				return err
			}
			return errors.Join(ok(sb.Run(ctx, code, nil)), sb.Close())
		}
	}
	without := llmsandbox.Options{BestEffort: true}
	// The first one installs, and is not counted.
	if err := do(with, one)(ctx); err != nil {
		return err
	}
	return compare(ctx, rounds,
		timed("Open+Run+Close", do(without, one)),
		timed("with a library that is cached", do(with, one)),
		timed("and imported", do(with, "import benchlib")),
	)
}

// wheel makes a package of one module.
func wheel(path string) error {
	const info = "benchlib-1.0.dist-info/"
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	z := zip.NewWriter(f)
	for _, member := range [][2]string{
		{"benchlib.py", "answer = 42\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: benchlib\nVersion: 1.0\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", "benchlib.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	} {
		w, err := z.Create(member[0])
		if err == nil {
			_, err = io.WriteString(w, member[1])
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(z.Close(), f.Close())
}
