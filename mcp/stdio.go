package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A lasting transport keeps a connection whose client has nothing more to say until all
// that it asked for is answered. So a shell can write requests into a pipe.
type lasting struct{ sdk.Transport }

func (l lasting) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := l.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &lastingConnection{Connection: c, pending: map[jsonrpc.ID]bool{}, changed: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

type lastingConnection struct {
	sdk.Connection
	mu      sync.Mutex
	pending map[jsonrpc.ID]bool // requests without an answer
	changed chan struct{}       // one of them got it
	once    sync.Once
	closed  chan struct{}
}

func (c *lastingConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if errors.Is(err, io.EOF) {
		c.wait(ctx)
	}
	if req, ok := m.(*jsonrpc.Request); ok && err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if req.IsCall() {
			c.pending[req.ID] = true
		} else if req.Method == "notifications/cancelled" {
			delete(c.pending, cancelled(req.Params)) // it may get no answer
		}
	}
	return m, err
}

// cancelled is the request that a notification takes back.
func cancelled(params json.RawMessage) jsonrpc.ID {
	var p struct {
		ID any `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return jsonrpc.ID{}
	}
	id, err := jsonrpc.MakeID(p.ID)
	if err != nil {
		return jsonrpc.ID{}
	}
	return id
}

// wait returns when nothing is pending.
func (c *lastingConnection) wait(ctx context.Context) {
	for {
		c.mu.Lock()
		left := len(c.pending)
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-c.changed:
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *lastingConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if res, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		delete(c.pending, res.ID)
		c.mu.Unlock()
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
	return err
}

func (c *lastingConnection) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}
