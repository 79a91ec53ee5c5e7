package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// bringAgent puts the agent into a running container, unless it is there, and returns
// its path. Nothing else in the container changes.
func (b *Backend) bringAgent(ctx context.Context, c container.InspectResponse, arch string) (string, error) {
	agent, err := agenthost.Bringer{
		Arch: arch, Fix: "give it a tmpfs with exec at /tmp",
		Run:  func(ctx context.Context, in io.Reader, argv ...string) error { return b.exec(ctx, c.ID, in, argv...) },
		Copy: func(ctx context.Context, dir string) error { return b.copyAgent(ctx, c.ID, dir, arch) },
	}.Bring(ctx)
	if err != nil {
		return "", fmt.Errorf("bring the guest agent into container %s: %w", b.options.Container, err)
	}
	return agent, nil
}

// copyAgent has the engine unpack the agent, for containers without a shell. It writes
// to the container's root, also below what a tmpfs hides.
func (b *Backend) copyAgent(ctx context.Context, id, dir, arch string) error {
	place, name := path.Dir(dir), path.Base(dir)
	pr, pw := io.Pipe()
	go func() {
		t := tar.NewWriter(pw)
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755}); err != nil {
			pw.CloseWithError(err)
			return
		}
		// The end of a tar comes once, with the files.
		if err := t.Flush(); err != nil {
			pw.CloseWithError(err)
			return
		}
		pw.CloseWithError(writeAgent(pw, arch, name+"/"))
	}()
	_, err := b.client.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: place, Content: pr})
	pr.CloseWithError(io.ErrClosedPipe)
	return err
}

// exec runs a program in a container to its end; its error contains what it printed.
func (b *Backend) exec(ctx context.Context, id string, in io.Reader, argv ...string) error {
	_, err := b.output(ctx, id, maxWords, nil, in, argv...)
	return err
}

// output is exec with variables in place of the container's own, and returns the first
// bytes of what the program prints.
func (b *Backend) output(ctx context.Context, id string, limit int64, env []string, in io.Reader, argv ...string) ([]byte, error) {
	made, err := b.client.ExecCreate(ctx, id, client.ExecCreateOptions{
		AttachStdin: in != nil, AttachStdout: true, AttachStderr: true, Cmd: argv, WorkingDir: "/", Env: env,
	})
	if err != nil {
		return nil, b.explain("run "+argv[0]+" in the container", err)
	}
	h, err := startExec(ctx, b.client, made.ID)
	if err != nil {
		return nil, b.explain("run "+argv[0]+" in the container", err)
	}
	defer h.Close()
	stop := context.AfterFunc(ctx, func() { h.Close() })
	defer stop()
	fed := make(chan error, 1)
	go func() {
		if in == nil {
			fed <- nil
			return
		}
		_, err := io.Copy(h.Conn, in)
		fed <- errors.Join(err, h.CloseWrite())
	}()
	s := newStream(h)
	var out bytes.Buffer
	_, err = io.Copy(&out, io.LimitReader(s, limit))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("run %s in the container: %w", argv[0], err), <-fed)
	}
	res, err := b.client.ExecInspect(ctx, made.ID, client.ExecInspectOptions{})
	if err != nil {
		return nil, errors.Join(b.explain("run "+argv[0]+" in the container", err), <-fed)
	}
	if res.ExitCode != 0 {
		// How it ended says more than what it did not read.
		return nil, fmt.Errorf("%s ended with %d: %q", argv[0], res.ExitCode, out.String()+s.Said())
	}
	return out.Bytes(), <-fed
}
