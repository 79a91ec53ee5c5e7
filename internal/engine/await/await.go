// Package await waits for the ends of an engine's containers.
package await

import (
	"context"
	"fmt"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// An End is how a container ended, or why that is not known.
type End struct {
	Code int64 // below 0 where the engine does not know it
	Err  error
}

// Container asks the engine to report when a container has reached a condition. The answer
// need not be taken: unlike the client's own call, this leaves nothing behind once ctx has
// ended.
func Container(ctx context.Context, c *client.Client, id string, until container.WaitCondition) <-chan End {
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
	why := r.Error.Message
	if why == "" {
		why = "it does not say why"
	}
	return End{Code: -1, Err: fmt.Errorf("the engine could not wait for the container: %.1000s", why)}
}
