package agentclient

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// TestLogsOfAHostileAgent: an agent that code has taken over makes logs neither hang nor grow.
func TestLogsOfAHostileAgent(t *testing.T) {
	piece := make([]byte, agentproto.MaxLogs)
	for name, c := range map[string]struct {
		follow bool
		pieces []agentproto.Output // the last one again and again
	}{
		"nothing, for ever":     {follow: true, pieces: []agentproto.Output{{}}},
		"the same again":        {follow: true, pieces: []agentproto.Output{{Offset: 5, Data: piece}}},
		"before what was asked": {follow: true, pieces: []agentproto.Output{{Offset: 4, Data: piece}}},
		"backwards":             {follow: true, pieces: []agentproto.Output{{Offset: 9, Data: piece}, {Err: true, Data: piece}, {Offset: 8, Data: piece}}},
		"an offset that wraps":  {follow: true, pieces: []agentproto.Output{{Offset: math.MaxInt64 - 1, Data: piece}}},
		"too large a piece":     {follow: true, pieces: []agentproto.Output{{Offset: 5, Data: make([]byte, agentproto.MaxLogs+1)}}},
		"more than is kept":     {},
	} {
		t.Run(name, func(t *testing.T) {
			agent := &fakeAgent{logs: func(call *agentproto.Call, req agentproto.LogsRequest) {
				if want := (agentproto.LogsRequest{ID: 7, OutOffset: 5, Follow: c.follow}); req != want {
					t.Errorf("request %+v, want %+v", req, want)
				}
				for i := uint64(0); ; i++ {
					part := agentproto.Output{Offset: 5 + i*agentproto.MaxLogs, Data: piece}
					if last := len(c.pieces) - 1; last >= 0 {
						part = c.pieces[min(int(i), last)]
					}
					if call.Send(&part) != nil {
						return
					}
				}
			}}
			client, _ := connect(t, agent)
			got := 0
			err := client.Logs(soon(t), agentproto.LogsRequest{ID: 7, OutOffset: 5, Follow: c.follow}, func(part agentproto.Output) error {
				got += len(part.Data)
				return nil
			})
			if _, ok := errors.AsType[*agentproto.ProtocolError](err); !ok || got > 2*(agentproto.MaxKept+agentproto.MaxLogs) {
				t.Errorf("%d bytes, %v, want a *ProtocolError and no more than an agent keeps", got, err)
			}
		})
	}
}

func TestLogsAreStopped(t *testing.T) {
	cancelled := make(chan struct{})
	client, _ := connect(t, &fakeAgent{logs: func(call *agentproto.Call, _ agentproto.LogsRequest) {
		call.Send(&agentproto.Output{Data: []byte("x")})
		<-call.Done()
		close(cancelled)
	}})
	stop := errors.New("stop")
	if err := client.Logs(soon(t), agentproto.LogsRequest{ID: 7, Follow: true}, func(agentproto.Output) error { return stop }); err != stop {
		t.Errorf("%v, want %v", err, stop)
	}
	<-cancelled
}

// TestLogsOfAnEndedContext end, although the agent sends all the time.
func TestLogsOfAnEndedContext(t *testing.T) {
	more := make(chan struct{})
	client, _ := connect(t, &fakeAgent{logs: func(call *agentproto.Call, _ agentproto.LogsRequest) {
		for i := uint64(0); call.Send(&agentproto.Output{Offset: i, Data: []byte("x")}) == nil; i++ {
			if i == 1000 {
				close(more)
			}
		}
	}})
	ctx, cancel := context.WithCancel(soon(t))
	pieces := 0
	err := client.Logs(ctx, agentproto.LogsRequest{ID: 7, Follow: true}, func(agentproto.Output) error {
		<-more
		cancel()
		pieces++
		return nil
	})
	if !errors.Is(err, context.Canceled) || pieces != 1 {
		t.Errorf("%d pieces, %v, want 1, context.Canceled", pieces, err)
	}
}
