package mcp

import (
	"context"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A progress reports to a client how a call goes on, where it has asked for that. Telling never
// blocks: what the client is too slow for is left out.
type progress struct {
	steps chan backend.Progress
	sent  sync.WaitGroup
	mu    sync.Mutex // of closing steps
	ended bool
}

// newProgress begins to tell of a call, until close.
func newProgress(ctx context.Context, req *sdk.CallToolRequest) *progress {
	p := &progress{}
	token := req.Params.GetProgressToken()
	if token == nil {
		return p
	}
	p.steps = make(chan backend.Progress, 16)
	p.sent.Go(func() {
		count := 0.0
		for step := range p.steps {
			count++
			// A client that cannot be reached will not get the result either.
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: count, Message: line(step.Message)})
		}
	})
	return p
}

// tell is of the shape of llmsandbox.Options.Progress.
func (p *progress) tell(step backend.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.steps == nil || p.ended {
		return
	}
	select {
	case p.steps <- step:
	default:
	}
}

func (p *progress) say(message string) { p.tell(backend.Progress{Message: message}) }

// close waits until all steps are sent, so that it comes before the result.
func (p *progress) close() {
	p.mu.Lock()
	p.ended = true
	if p.steps != nil {
		close(p.steps)
	}
	p.mu.Unlock()
	p.sent.Wait()
}
