package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
)

//go:embed sandlock.py
var sandlockProgram string

// inPlace measures sandboxes without namespaces against the same interpreter bare and isolated by others. Where root measures and its python3
// is below a home directory, that is another one: code is another user, who cannot reach it.
func inPlace(ctx context.Context, e *env, rounds int) (err error) {
	o := llmsandbox.Options{Language: "python", BestEffort: true, Backend: local.New(&local.Options{Isolation: "process"})}
	sb, err := llmsandbox.Open(ctx, &o)
	if errors.Is(err, llmsandbox.ErrUnsupported) {
		fmt.Println("left out:", err)
		return nil
	}
	if err != nil {
		return err
	}
	res, err := sb.Run(ctx, "import sys; print(sys.executable)", nil)
	if err := errors.Join(ok(res, err), sb.Close()); err != nil {
		return err
	}
	python := strings.TrimSpace(res.Stdout)
	fmt.Println("python", python)
	bare, process := "python3 -c, bare", "Open+Run+Close, process"
	all := []contender{program(bare, python, "-c", one), timed(process, openRunClose(o, one))}
	if e.bwrap != nil {
		all = append(all, program("bwrap --unshare-all", append(e.bwrap, python, "-c", one)...))
	}
	sandlock, err := newReference(ctx, e.dir, "sandlock", "", sandlockProgram)
	if err != nil {
		fmt.Println("sandlock: left out:", err)
	} else {
		defer func() { err = errors.Join(err, sandlock.close()) }()
		all = append(all, contender{"sandlock, Sandbox.run", func(context.Context) (time.Duration, error) {
			took, _, err := sandlock.ask("run", []string{python, "-c", one})
			return took, err
		}})
	}
	t, err := measure(ctx, rounds, all...)
	if err != nil {
		return err
	}
	t.print()
	aimAtMost(process+" × bare", 1.3, t.ratio(process, bare))
	return nil
}
