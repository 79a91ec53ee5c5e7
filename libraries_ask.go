package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// Bounds of what a tool of this machine may take to tell its configuration.
const (
	toolTimeout = time.Minute
	maxAnswer   = 4 << 20
)

// hostTools asks the package tools of this machine for their configuration.
func hostTools(ctx context.Context) language.Ask {
	home, _ := os.UserHomeDir() // without one there is no configuration in it
	return language.Ask{
		Program: func(argv ...string) ([]byte, error) { return askTool(ctx, argv) },
		Env:     os.Getenv, File: readConfiguration, Home: home,
	}
}

func askTool(ctx context.Context, argv []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], fs.ErrNotExist)
	}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	// A project that we happen to be started in must not say where libraries come from.
	cmd.Dir = os.TempDir()
	cmd.WaitDelay = time.Second // a child of the tool may hold its output
	out, words := bounded{most: maxAnswer}, bounded{most: maxAnswer}
	cmd.Stdout, cmd.Stderr = &out, &words
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("ask %s: %w", argv[0], ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("ask %s: %w: %s", argv[0], err, lastLine(string(words.kept)))
	case out.cut:
		return nil, fmt.Errorf("ask %s: it says more than %d bytes", argv[0], maxAnswer)
	}
	return out.kept, nil
}

func readConfiguration(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is no ordinary file: %w", path, fs.ErrInvalid))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = fmt.Errorf("%s is larger than %d bytes: %w", path, maxAnswer, fs.ErrInvalid)
	}
	return data, err
}
