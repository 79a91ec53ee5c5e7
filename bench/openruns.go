package main

import (
	"context"
	"fmt"

	"github.com/llmsandbox/llmsandbox"
)

// runsIn measures what a run of Python costs in an open sandbox, and how it is entered
// otherwise. aim is what Run may take more than the bare interpreter, in milliseconds.
func (e *env) runsIn(ctx context.Context, rounds int, sb *llmsandbox.Sandbox, aim float64, otherwise ...contender) (*table, error) {
	contenders := append([]contender{
		timed("Exec of the same argv", func(ctx context.Context) error { return ok(sb.Exec(ctx, []string{"python3", "-c", one}, nil)) }),
		timed("Run", func(ctx context.Context) error { return ok(sb.Run(ctx, one, nil)) }),
		timed("Exec /bin/true", func(ctx context.Context) error { return ok(sb.Exec(ctx, []string{"/bin/true"}, nil)) }),
	}, otherwise...)
	python := e.sameVersion(ctx, sb)
	if python == "" {
		fmt.Println("bare: left out (this machine has no python3 of the version in the image)")
	} else {
		contenders = append([]contender{program("bare", python, "-c", one)}, contenders...)
	}
	t, err := measure(ctx, rounds, contenders...)
	if err != nil {
		return nil, err
	}
	t.print()
	if python != "" {
		aimAtMost("Run less the bare interpreter, ms", aim, t.more("Run", "bare"))
	}
	return t, nil
}
