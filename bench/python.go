package main

import (
	"context"
	_ "embed"
	"errors"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
)

//go:embed client.py
var clientProgram string

// pythonClient measures what the Python package takes: its import, and a run against that of the Go client, in the same sandbox of the same server.
func pythonClient(ctx context.Context, e *env, rounds int) (err error) {
	const path = "import sys; sys.path.insert(0, 'python/src'); "
	bare, imported, used := "python3, bare", "import llmsandbox", "the same, and its Sandbox"
	t, err := measure(ctx, rounds,
		program(bare, e.python, "-c", path),
		program(imported, e.python, "-c", path+"import llmsandbox"),
		program(used, e.python, "-c", path+"import llmsandbox; llmsandbox.Sandbox"),
	)
	if err != nil {
		return err
	}
	t.print()
	aimAtMost("ms that "+imported+" takes", 30, t.more(imported, bare))

	s, err := startServer(ctx, e.command)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	c, err := client.New(s.address, s.key)
	if err != nil {
		return err
	}
	sb, err := c.Open(ctx, &llmsandbox.Options{Language: "python"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	p, err := startReference(ctx, "llmsandbox", e.python, clientProgram)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if _, _, err := p.ask("attach", []string{s.address, s.key, sb.ID()}); err != nil {
		return err
	}
	ours, theirs := "Run in an open sandbox, Go client", "run in the same sandbox, Python package"
	t, err = measure(ctx, rounds, timed(ours, func(ctx context.Context) error { return ok(sb.Run(ctx, one, nil)) }), p.asked(theirs, "run", one))
	if err != nil {
		return err
	}
	t.print()
	aimAtMost("ms that "+theirs+" takes more", 2, t.more(theirs, ours))
	return nil
}
