package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
	"github.com/llmsandbox/llmsandbox/internal/untar"
)

// CopyOut copies a file or directory of the sandbox to the host. A directory comes to lie
// in dest under its own name; a file becomes dest, or lies in it when dest is a
// directory or ends in a slash. Missing directories on the way are made. Links, devices and
// unsafe names are left out and reported. A link at dest or below is not followed:
// a file takes its place, and a directory is not written through it. What is new on the
// host has the present as its time.
func CopyOut(ctx context.Context, guest Guest, src, dest string, o Options) (Result, error) {
	var res Result
	if err := copyOut(ctx, guest, src, dest, o.withDefaults(), &res); err != nil {
		return res, fmt.Errorf("copy %q out of the sandbox (%d files, %d bytes were written): %w", src, res.Files, res.Bytes, err)
	}
	return res, nil
}

func copyOut(ctx context.Context, guest Guest, src, dest string, o Options, res *Result) error {
	if dest == "" {
		return fmt.Errorf("%w: the destination is empty", tarcheck.ErrUnsafe)
	}
	info, name, err := source(ctx, guest, src)
	if err != nil {
		return err
	}
	dir := filepath.Clean(dest)
	if info.Type == agentproto.TypeRegular {
		st, err := os.Lstat(dir)
		if (err != nil || !st.IsDir()) && !endsInSeparator(dest) {
			dir, name = filepath.Dir(dir), filepath.Base(dir)
		}
	}
	// The path to a file's directory is the caller's. A directory that is itself the
	// destination must not be a link.
	follow := info.Type == agentproto.TypeRegular && dir != filepath.Clean(dest)
	made := firstMissing(filepath.Join(dir, name))
	root, err := openDest(dir, follow)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := receive(ctx, guest, src, name, res, func(r io.Reader) error { return extract(r, root, o, res) }); err != nil {
		return err
	}
	if res.Files == 0 && len(res.Skipped) > 0 {
		if made != "" {
			removeEmpty(made)
		}
		return fmt.Errorf("%w: left out: %s", ErrNoSafeContent, strings.Join(res.Skipped[:min(len(res.Skipped), 3)], "; "))
	}
	return nil
}

// source describes what is to be copied out, with the name that it has. Only files and directories are.
func source(ctx context.Context, guest Guest, src string) (info agentproto.FileInfo, name string, err error) {
	if hasDotDot(src) {
		return info, "", fmt.Errorf("%w: give a path without .. in it", tarcheck.ErrUnsafe)
	}
	if info, err = guest.Stat(ctx, src); err != nil {
		return info, "", err
	}
	if name = path.Base(path.Clean(src)); name == "/" || name == "." {
		name = "root"
	}
	switch info.Type {
	case agentproto.TypeDir, agentproto.TypeRegular:
		return info, name, nil
	case agentproto.TypeSymlink:
		return info, "", fmt.Errorf("%w: it is a symbolic link", ErrNoSafeContent)
	default:
		return info, "", fmt.Errorf("%w: it is neither a regular file nor a folder", tarcheck.ErrUnsafe)
	}
}

func endsInSeparator(path string) bool {
	return os.IsPathSeparator(path[len(path)-1])
}

// openDest opens the destination directory, made with those above it when missing.
func openDest(dir string, follow bool) (*os.Root, error) {
	open := untar.OpenDir
	if follow {
		open = os.OpenRoot
	}
	makeErr := os.MkdirAll(dir, 0o755)
	root, err := open(dir)
	if errors.Is(err, fs.ErrNotExist) && makeErr != nil {
		err = makeErr // where something is there, open says more
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", dir, err)
	}
	return root, nil
}

// receive has take read the archive that the sandbox sends.
func receive(ctx context.Context, guest Guest, src, name string, res *Result, take func(io.Reader) error) error {
	reader, writer := io.Pipe()
	type outcome struct {
		skipped []string
		err     error
	}
	sent := make(chan outcome, 1)
	go func() {
		got, err := guest.TarOut(ctx, src, name, writer)
		writer.CloseWithError(err)
		sent <- outcome{got.Skipped, err}
	}()
	err := take(reader)
	if err == nil {
		// The archive's padding.
		_, err = io.Copy(io.Discard, io.LimitReader(reader, 1<<20))
	}
	reader.CloseWithError(errors.New("the host takes no more"))
	got := <-sent
	for _, s := range got.skipped {
		res.skip(s)
	}
	if err == nil {
		err = got.err
	}
	return err
}

// extract unpacks a tar stream of the sandbox, and leaves out what must not be followed.
func extract(r io.Reader, root *os.Root, o Options, res *Result) error {
	made, err := untar.Unpack(r, root, untar.Options{
		Options: tarcheck.Options{
			MaxMembers: o.MaxFiles, MaxBytes: o.MaxBytes,
			Skip: func(name string, why error) { res.skip(quote(name) + ": " + why.Error()) },
		},
		Mode: func(mode int64) fs.FileMode { return fs.FileMode(safeMode(mode)) }, Replace: true,
	})
	res.Files, res.Bytes = made.Files, made.Bytes
	return err
}

// quote makes a name from the sandbox fit to be shown.
func quote(name string) string {
	const most = 4096
	if len(name) > most {
		name = "..." + name[len(name)-most:]
	}
	return strconv.Quote(name)
}

// firstMissing is the topmost part of a path that is not there, or "".
func firstMissing(path string) string {
	missing := ""
	for {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return missing
		}
		missing = path
		up := filepath.Dir(path)
		if up == path {
			return missing
		}
		path = up
	}
}

// removeEmpty removes the directories that a copy made and put nothing into. What
// another process has put there meanwhile stays, and the directories around it.
func removeEmpty(top string) {
	var made []string
	_ = filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			made = append(made, name)
		}
		return nil
	})
	for i := len(made) - 1; i >= 0; i-- {
		_ = os.Remove(made[i]) // fails for one that is not empty
	}
}
