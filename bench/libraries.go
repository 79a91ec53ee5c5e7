package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
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

// firstPlot compares a plot in a fresh sandbox to the same packages on a bare interpreter, where
// matplotlib has its list of fonts already.
func firstPlot(ctx context.Context, e *env, rounds int) error {
	dir, err := os.MkdirTemp("", "llmsandbox-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	packages, plot := filepath.Join(dir, "packages"), filepath.Join(dir, "plot.py")
	if err := os.WriteFile(plot, []byte("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.savefig('plot.png')\n"), 0o600); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, e.python, "-m", "pip", "install", "--target", packages, "matplotlib").CombinedOutput(); err != nil {
		fmt.Printf("left out: pip install matplotlib: %v: %s\n", err, out)
		return nil
	}
	bare := func(ctx context.Context) error {
		c := exec.CommandContext(ctx, e.python, plot)
		c.Dir, c.Env = dir, append(os.Environ(), "PYTHONPATH="+packages, "MPLCONFIGDIR="+filepath.Join(dir, "configuration"))
		return c.Run()
	}
	sandbox := timed("llmsandbox run --lib matplotlib", func(ctx context.Context) error {
		c := exec.CommandContext(ctx, e.command, "run", "--lib", "matplotlib", plot)
		c.Dir = dir
		return c.Run()
	})
	t, err := measure(ctx, rounds, timed("python3, bare, fonts known", bare), sandbox)
	if err != nil {
		return err
	}
	t.print()
	aimAtMost("first plot × bare", 1.2, t.ratio(sandbox.name, t.names[0]))
	return nil
}

// libraryInstalls compares installing a list, without and with its packages in the cache, to uv, bare, without its
// cache. What was installed is kept until the end: a file system may take longer to make files where many were just removed.
func libraryInstalls(ctx context.Context, e *env, rounds int) error {
	dir, err := os.MkdirTemp("", "llmsandbox-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	list := []string{"matplotlib", "pandas", "plotly"}
	cache, tools := filepath.Join(dir, "cache"), filepath.Join(dir, "tools")
	if out, err := exec.CommandContext(ctx, e.python, "-m", "pip", "install", "--target", tools, "uv").CombinedOutput(); err != nil {
		fmt.Printf("left out: pip install uv: %v: %s\n", err, out)
		return nil
	}
	bare := contender{"uv pip install --compile-bytecode --target, bare", func(ctx context.Context) (time.Duration, error) {
		target, err := os.MkdirTemp(dir, "bare-*")
		if err != nil {
			return 0, err
		}
		return took(exec.CommandContext(ctx, filepath.Join(tools, "bin", "uv"), append([]string{"pip", "install", "--python", e.python, "--no-cache", "--compile-bytecode", "--target", target}, list...)...))
	}}
	layers, err := local.New(&local.Options{CacheDir: cache}).Layers()
	if err != nil {
		return err
	}
	without := func(gone func(backend.LayerInfo) bool) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) {
			have, err := layers.List(ctx)
			if err != nil {
				return 0, err
			}
			old, err := os.MkdirTemp(dir, "old-*")
			if err != nil {
				return 0, err
			}
			for _, l := range have {
				if gone(l) {
					if err := os.Rename(filepath.Join(cache, "layers", l.Key), filepath.Join(old, l.Key)); err != nil {
						return 0, err
					}
				}
			}
			c := exec.CommandContext(ctx, e.command, "run", "--quiet", "--lib", list[0], "--lib", list[1], "--lib", list[2], "-c", "pass")
			c.Env = append(os.Environ(), "LLMSANDBOX_CACHE_DIR="+cache)
			return took(c)
		}
	}
	sandbox := contender{"llmsandbox run --lib", without(func(l backend.LayerInfo) bool { return l.Cache != "uv" })}
	cached := contender{"with the packages cached", without(func(l backend.LayerInfo) bool { return l.Cache == "" && !l.Package })}
	t, err := measure(ctx, min(rounds, 10), bare, sandbox, cached)
	if err != nil {
		return err
	}
	t.print()
	aimAtMost("install × bare", 1.3, t.ratio(sandbox.name, bare.name))
	aimAtMost("install with the packages cached × bare", 0.2, t.ratio(cached.name, bare.name))
	return nil
}

// took runs a command, and returns how long that took.
func took(c *exec.Cmd) (time.Duration, error) {
	start := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return time.Since(start), nil
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
