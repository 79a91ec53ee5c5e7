package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// goPrograms compares programs that no one has compiled before, with the standard library cached, and
// then the first of all, with nothing cached.
func goPrograms(ctx context.Context, e *env, rounds int) error {
	if _, err := exec.LookPath("go"); err != nil {
		fmt.Println("left out:", err)
		return nil
	}
	dir := filepath.Join(e.dir, "go")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	n := 0
	next := func() string {
		n++
		return fmt.Sprintf("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\", %d) }\n", n)
	}
	cache := filepath.Join(dir, "cache")
	bare := func(argv ...[]string) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(next()), 0o600); err != nil {
				return err
			}
			for _, args := range argv {
				c := exec.CommandContext(ctx, args[0], args[1:]...)
				c.Dir, c.Env = dir, append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0", "GOCACHE="+cache)
				if out, err := c.CombinedOutput(); err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
			}
			return nil
		}
	}
	built := timed("go build and its program, bare", bare([]string{"go", "build", "-o", "program", "main.go"}, []string{"./program"}))
	sandbox := timed("Open+Run+Close", func(ctx context.Context) error {
		sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Language: "go", BestEffort: true})
		if err != nil {
			return err
		}
		return errors.Join(ok(sb.Run(ctx, next(), nil)), sb.Close())
	})
	t, err := measure(ctx, rounds, built, timed("go run, bare", bare([]string{"go", "run", "main.go"})), sandbox)
	if err != nil {
		return err
	}
	t.print()
	aimAtMost("Open+Run+Close × go build and its program", 0.8, t.ratio(sandbox.name, built.name))
	return firstGo(ctx, e, cache, max(rounds/20, 1), bare([]string{"go", "run", "main.go"}), next)
}

// firstGo compares first programs. What was cached for one is not there for the next.
func firstGo(ctx context.Context, e *env, cache string, rounds int, bare func(context.Context) error, next func() string) error {
	fresh := func(name, dir string, do func(context.Context) error) contender {
		return contender{name, func(ctx context.Context) (time.Duration, error) {
			if err := os.RemoveAll(dir); err != nil {
				return 0, err
			}
			start := time.Now()
			err := do(ctx)
			return time.Since(start), err
		}}
	}
	prepared := filepath.Join(e.dir, "prepared")
	first := fresh("first llmsandbox run", prepared, func(ctx context.Context) error {
		c := exec.CommandContext(ctx, e.command, "run", "-l", "go", "-c", next())
		c.Env = append(os.Environ(), "LLMSANDBOX_CACHE_DIR="+prepared)
		out, err := c.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	t, err := measure(ctx, rounds, fresh("first go run, bare", cache, bare), first)
	if err != nil {
		return err
	}
	t.print()
	aimAtMost("the first llmsandbox run, seconds", 5, percentile(t.times[first.name], 50)/1000)
	return nil
}

// A compiledProgram is compiled and run, by the bare tools in a shell and in a sandbox.
type compiledProgram struct {
	language, file, code string
	bare                 []string // commands of a shell in a directory with the file
}

var compiledPrograms = []compiledProgram{
	{"java", "Main.java", "public class Main {\n    public static void main(String[] args) {\n        System.out.println(\"Hello\");\n    }\n}\n",
		[]string{"javac Main.java && java Main", "java Main.java"}},
	{"cpp", "main.cpp", "#include <iostream>\n#include <vector>\n#include <algorithm>\n\nint main() {\n    std::vector<int> v{5, 3, 9, 1};\n" +
		"    std::sort(v.begin(), v.end());\n    for (int n : v) std::cout << n << '\\n';\n}\n",
		[]string{"g++ -o main main.cpp && ./main"}},
	{"cpp", "main.cpp", "#include <bits/stdc++.h>\n\nint main() { std::cout << 1 << std::endl; }\n", []string{"g++ -o main main.cpp && ./main"}},
	{"c", "main.c", "#include <stdio.h>\n\nint main(void) { printf(\"1\\n\"); }\n", []string{"gcc -o main main.c && ./main"}},
}

// compiled compares sandboxes to bare compilers, which have none of the prepared caches.
func compiled(ctx context.Context, e *env, rounds int) error {
	for i, p := range compiledPrograms {
		dir := filepath.Join(e.dir, fmt.Sprint("compiled-", i))
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, p.file), []byte(p.code), 0o600)); err != nil {
			return err
		}
		var all []contender
		for _, script := range p.bare {
			all = append(all, timed(script, func(ctx context.Context) error {
				cmd := exec.CommandContext(ctx, "sh", "-c", script)
				cmd.Dir = dir
				return cmd.Run()
			}))
		}
		options := llmsandbox.Options{Language: p.language, BestEffort: true}
		sb, err := llmsandbox.Open(ctx, &options)
		if errors.Is(err, llmsandbox.ErrToolchain) {
			fmt.Println(p.language+": left out:", err)
			continue
		}
		if err != nil {
			return err
		}
		defer sb.Close()
		all = append(all,
			timed("Open+Run+Close", func(ctx context.Context) error {
				sb, err := llmsandbox.Open(ctx, &options)
				if err != nil {
					return err
				}
				return errors.Join(ok(sb.Run(ctx, p.code, nil)), sb.Close())
			}),
			timed("Run", func(ctx context.Context) error { return ok(sb.Run(ctx, p.code, nil)) }))
		if err := compare(ctx, max(rounds/2, 1), all...); err != nil {
			return err
		}
	}
	return nil
}
