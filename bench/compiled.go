package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/llmsandbox/llmsandbox"
)

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
