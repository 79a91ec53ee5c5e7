package transfer

import (
	"archive/tar"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// TarOut writes a file or directory of the sandbox to w as a tar archive. Its members' names begin with name; empty is the path's own. The archive is
// written anew of what the sandbox sends: it has what CopyOut would make, and nothing else.
func TarOut(ctx context.Context, guest Guest, src, name string, w io.Writer, o Options) (Result, error) {
	var res Result
	_, own, err := source(ctx, guest, src)
	if err == nil {
		err = receive(ctx, guest, src, cmp.Or(name, own), &res, func(r io.Reader) error { return repack(r, w, o.withDefaults(), &res) })
	}
	if err != nil {
		return res, fmt.Errorf("archive %q of the sandbox: %w", src, err)
	}
	return res, nil
}

// repack writes to w the members of an archive of the sandbox that may be unpacked.
func repack(r io.Reader, w io.Writer, o Options, res *Result) error {
	tw, buf := tar.NewWriter(w), make([]byte, copyBuffer)
	err := tarcheck.Read(r, tarcheck.Options{
		MaxMembers: o.MaxFiles, MaxBytes: o.MaxBytes,
		Skip: func(name string, why error) { res.skip(quote(name) + ": " + why.Error()) },
	}, func(m tarcheck.Member, content io.Reader) error {
		h := &tar.Header{Typeflag: m.Typeflag, Name: strings.Join(m.Path, "/"), Mode: safeMode(m.Mode), ModTime: m.ModTime}
		if m.Typeflag == tar.TypeDir {
			h.Name, h.Mode = h.Name+"/", h.Mode|0o700
			return tw.WriteHeader(h)
		}
		h.Size = m.Size
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		n, err := io.CopyBuffer(tw, content, buf)
		if err != nil {
			return err
		}
		res.Files++
		res.Bytes += n
		return nil
	})
	if err == nil {
		err = tw.Close()
	}
	return err
}

// TarIn unpacks a tar archive into a directory of the sandbox, which is made with those above it. It happens in the sandbox. Links and unsafe
// names are left out and reported.
func TarIn(ctx context.Context, guest Guest, r io.Reader, dest string, o Options) (Result, error) {
	o = o.withDefaults()
	var res Result
	err := fmt.Errorf("%w: give a path without .. in it", tarcheck.ErrUnsafe)
	if dest != "" && !hasDotDot(dest) {
		err = notLink(ctx, guest, dest)
	}
	if err == nil {
		got, tarErr := guest.TarIn(ctx, dest, r, agentclient.TarLimits{MaxBytes: uint64(o.MaxBytes), MaxFiles: uint64(o.MaxFiles)})
		res, err = Result{Files: int64(got.Files), Bytes: int64(got.Bytes), Skipped: got.Skipped}, tarErr
	}
	if err != nil {
		return res, fmt.Errorf("unpack into %q of the sandbox: %w", dest, err)
	}
	return res, nil
}
