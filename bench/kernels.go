package main

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/llmsandbox/llmsandbox"
)

// trivial is a cell that does next to nothing, in each language.
var trivial = []struct{ language, code string }{
	{"python", "1 + 1"}, {"javascript", "1 + 1"}, {"bash", ":"}, {"ruby", "1 + 1"}, {"r", "1 + 1"}, {"java", "1 + 1"},
}

// kernels measures what it takes to open a kernel, and the round trip of a cell.
func kernels(ctx context.Context, e *env, rounds int) error {
	sb, err := open(ctx)
	if err != nil {
		return err
	}
	defer sb.Close()
	plain := &llmsandbox.KernelOptions{Plain: true}
	opened := func(cell string) func(context.Context) error {
		return func(ctx context.Context) error {
			k, err := sb.Kernel(ctx, "python", plain)
			if err != nil {
				return err
			}
			defer k.Close()
			if cell == "" {
				return nil
			}
			return cellOK(k.Run(ctx, cell, nil))
		}
	}
	err = compare(ctx, rounds,
		timed("bare python3 -c pass", func(ctx context.Context) error { return exec.CommandContext(ctx, e.python, "-c", "pass").Run() }),
		timed("a Python kernel, opened and closed", opened("")),
		timed("the same with a first cell", opened("1 + 1")),
	)
	if err != nil {
		return err
	}
	all := []contender{timed("Run of Python", func(ctx context.Context) error { return ok(sb.Run(ctx, one, nil)) })}
	for _, c := range trivial {
		k, err := sb.Kernel(ctx, c.language, plain)
		if err != nil {
			fmt.Printf("left out: %v\n", err)
			continue
		}
		defer k.Close()
		all = append(all, timed("a cell of "+c.language, func(ctx context.Context) error { return cellOK(k.Run(ctx, c.code, nil)) }))
	}
	return compare(ctx, rounds, all...)
}

// cellOK turns a cell that did not end well into an error.
func cellOK(c *llmsandbox.Cell, err error) error {
	if err == nil && !c.OK() {
		err = fmt.Errorf("status %s: %s%s", c.Status, c.Reason, c.Stderr)
	}
	return err
}
