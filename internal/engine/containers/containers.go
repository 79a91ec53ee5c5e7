// Package containers asks an engine about containers where its answers need care.
//
// Engines do not always say that a container is absent: Podman, while it removes one, may
// have it in its list and no longer in its database, and then answers with an internal
// error. Docker, after a crash, may list one that is nowhere else, until it starts again.
package containers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// Absent reports whether err, of a call about one container, says that there is none such
// or that it is being removed at this moment.
func Absent(err error) bool { return errdefs.IsNotFound(err) || vanishing(err) }

// vanishing knows Podman's messages.
func vanishing(err error) bool {
	return errdefs.IsInternal(err) &&
		(strings.Contains(err.Error(), "no such container") || strings.Contains(err.Error(), "container has already been removed"))
}

// Improper reports whether err, of a removal, is Podman's answer that the state of the container does not allow it: it is
// about to end, or being removed at this moment.
func Improper(err error) bool {
	return errdefs.IsInternal(err) && strings.Contains(err.Error(), "container state improper")
}

// listTries is how often a list is asked for. Each time one more container has gone.
const listTries = 10

// List lists containers without those that go meanwhile or have gone.
func List(ctx context.Context, c *client.Client, o client.ContainerListOptions) ([]container.Summary, error) {
	for try := 1; ; try++ {
		res, err := c.ContainerList(ctx, o)
		if err == nil {
			return known(ctx, c, res.Items)
		}
		if try == listTries || !vanishing(err) {
			return nil, err
		}
	}
}

// known leaves out dead containers that the engine no longer knows.
func known(ctx context.Context, c *client.Client, all []container.Summary) ([]container.Summary, error) {
	var there []container.Summary
	for _, one := range all {
		if one.State == container.StateDead {
			_, err := c.ContainerInspect(ctx, one.ID, client.ContainerInspectOptions{})
			if Absent(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		there = append(there, one)
	}
	return there, nil
}

// An End is how a container ended, or why that is not known.
type End struct {
	Code int64 // below 0 where the engine does not know it
	Err  error
}

// Wait asks the engine to report when a container has reached a condition. The answer
// need not be taken: unlike the client's own call, this leaves nothing behind once ctx has
// ended.
func Wait(ctx context.Context, c *client.Client, id string, until container.WaitCondition) <-chan End {
	end := make(chan End, 1)
	go func() {
		w := c.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: until})
		select { // one of the two comes, at the latest when ctx ends
		case r := <-w.Result:
			end <- ended(r)
		case err := <-w.Error:
			end <- End{Err: err}
		}
	}()
	return end
}

// ended reads an answer. Engines answer well as soon as they begin to wait, and say
// afterwards that they could not.
func ended(r container.WaitResponse) End {
	if r.Error == nil {
		return End{Code: r.StatusCode}
	}
	why := cmp.Or(r.Error.Message, "it does not say why")
	return End{Code: -1, Err: fmt.Errorf("the engine could not wait for the container: %.1000s", why)}
}

// CopyTo has the engine unpack the tar that write writes into a directory of a container.
func CopyTo(ctx context.Context, c *client.Client, id, dir string, write func(io.Writer) error) error {
	return Pipe(write, func(r io.Reader) error {
		_, err := c.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: dir, Content: r})
		return err
	})
}

// errReadEnd is a writer's error when its reader wants no more.
var errReadEnd = errors.New("the engine reads no further")

// Pipe passes what write writes to read, and returns when both have. When the writer
// fails, its error is the one that counts: the reader's only follows from it.
func Pipe(write func(io.Writer) error, read func(io.Reader) error) error {
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := write(w)
		w.CloseWithError(err) // nil is the end
		wrote <- err
	}()
	err := read(r)
	r.CloseWithError(errReadEnd)
	if werr := <-wrote; werr != nil && !errors.Is(werr, errReadEnd) {
		return werr
	}
	return err
}
