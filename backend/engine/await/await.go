// Package await waits for the ends of an engine's containers.
package await

import (
	"context"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// An End is how a container ended, or why that cannot be told.
type End struct {
	Code int64
	Err  error
}

// Container asks the engine to tell when a container has come to a condition. The answer
// need not be taken: unlike the client's own call, this leaves nothing behind once ctx has
// ended.
func Container(ctx context.Context, c *client.Client, id string, until container.WaitCondition) <-chan End {
	end := make(chan End, 1)
	go func() {
		w := c.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: until})
		select { // one of the two comes, at the latest when ctx ends
		case r := <-w.Result:
			end <- End{Code: r.StatusCode}
		case err := <-w.Error:
			end <- End{Err: err}
		}
	}()
	return end
}
