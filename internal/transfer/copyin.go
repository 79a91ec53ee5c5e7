package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// CopyIn copies a host file or directory to dest in the sandbox; the directory's content
// becomes dest's, and a file becomes dest, or lies in it when dest is a directory or
// ends in a slash. Missing directories above dest are made. A src that is a symbolic link
// is followed: it is the caller's own path. Symbolic links inside a directory are left out
// and reported; a FIFO, socket or device anywhere refuses the whole copy before
// anything is written. It returns when nothing of the host is read any more.
func CopyIn(ctx context.Context, guest Guest, src, dest string, o Options) (Result, error) {
	var res Result
	if err := copyIn(ctx, guest, src, dest, o.withDefaults(), &res); err != nil {
		return res, fmt.Errorf("copy %q to %q in the sandbox: %w", src, dest, err)
	}
	return res, nil
}

func copyIn(ctx context.Context, guest Guest, src, dest string, o Options, res *Result) error {
	if dest == "" || hasDotDot(dest) {
		return fmt.Errorf("%w: give a path without .. in it", tarcheck.ErrUnsafe)
	}
	info, err := os.Stat(src)
	if err != nil {
		return err
	}
	p := packer{src: src, o: o}
	dir := dest
	if info.IsDir() {
		if p.root, err = os.OpenRoot(src); err != nil {
			return err
		}
		defer p.root.Close()
		if err := p.check(ctx, res); err != nil {
			return err
		}
		if err := notLink(ctx, guest, dest); err != nil {
			return err
		}
	} else {
		if !info.Mode().IsRegular() {
			return special(src)
		}
		if dir, p.name, err = place(ctx, guest, src, dest); err != nil {
			return err
		}
	}
	got, err := send(ctx, guest, dir, &p)
	res.Files, res.Bytes = int64(got.Files), int64(got.Bytes)
	for _, s := range got.Skipped {
		res.skip(s)
	}
	if err == nil && p.name != "" && got.Files == 0 {
		err = fmt.Errorf("%w: %s", tarcheck.ErrUnsafe, strings.Join(got.Skipped, "; "))
	}
	return err
}

// notLink refuses a link at the place of a directory. Code in the sandbox that makes one
// later leads the copy no further than it can write itself.
func notLink(ctx context.Context, guest Guest, dest string) error {
	found, err := typeAt(ctx, guest, strings.TrimRight(dest, "/"))
	if err == nil && found == agentproto.TypeSymlink {
		err = fmt.Errorf("%w: there is a symbolic link, which is not followed", tarcheck.ErrUnsafe)
	}
	return err
}

// place returns the directory and name in the sandbox that a file goes to.
func place(ctx context.Context, guest Guest, src, dest string) (dir, name string, err error) {
	found := agentproto.TypeDir
	if !strings.HasSuffix(dest, "/") {
		if found, err = typeAt(ctx, guest, dest); err != nil {
			return "", "", err
		}
	}
	if found != agentproto.TypeDir {
		return path.Dir(dest), path.Base(dest), nil
	}
	return dest, filepath.Base(src), nil
}

// typeAt reports what is at a path of the sandbox. It is 0 also when the sandbox refuses
// to say: then the writing fails, and says why.
func typeAt(ctx context.Context, guest Guest, path string) (agentproto.FileType, error) {
	info, err := guest.Stat(ctx, path)
	if _, ok := errors.AsType[*agentproto.Error](err); ok {
		return 0, nil
	}
	return info.Type, err
}

// send packs and sends, and returns when both have ended.
func send(ctx context.Context, guest Guest, dir string, p *packer) (agentproto.TarResult, error) {
	reader, writer := io.Pipe()
	// So that the caller does not wait for the next piece of a file that is read slowly.
	defer context.AfterFunc(ctx, func() { reader.CloseWithError(context.Cause(ctx)) })()
	packed := make(chan error, 1)
	go func() {
		err := p.pack(ctx, writer)
		writer.CloseWithError(err)
		packed <- err
	}()
	got, err := guest.TarIn(ctx, dir, reader, agentclient.TarLimits{})
	stopped := errors.New("the sandbox takes no more")
	reader.CloseWithError(stopped)
	// When the packer failed, it failed first, or by being stopped.
	if packErr := <-packed; packErr != nil && !errors.Is(packErr, stopped) && ctx.Err() == nil {
		err = packErr
	}
	return got, err
}
