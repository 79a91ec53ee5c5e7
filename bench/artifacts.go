package main

import (
	"context"

	"github.com/llmsandbox/llmsandbox"
)

// captured compares runs with the capture of artifacts and without it: programs that make
// none, which must not feel it, and one that writes a file.
func captured(ctx context.Context, e *env, rounds int) error {
	sb, err := open(ctx)
	if err != nil {
		return err
	}
	defer sb.Close()
	off := &llmsandbox.ArtifactOptions{Off: true}
	run := func(lang, code string, o *llmsandbox.ArtifactOptions) func(context.Context) error {
		return func(ctx context.Context) error {
			return ok(sb.Run(ctx, code, &llmsandbox.RunOptions{Language: lang, Artifacts: o}))
		}
	}
	err = compare(ctx, rounds,
		timed("Run of bash, no capture", run("bash", "echo 1", off)),
		timed("Run of bash, nothing made", run("bash", "echo 1", nil)),
		timed("Run of bash, a file made", run("bash", "echo 1 > artifacts/made.txt", nil)),
	)
	if err != nil {
		return err
	}
	return compare(ctx, rounds,
		timed("Run of Python, no capture", run("python", one, off)),
		timed("Run of Python, nothing plotted", run("python", one, nil)),
	)
}
