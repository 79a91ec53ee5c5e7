package e2b

import (
	"context"

	"connectrpc.com/connect"

	"github.com/llmsandbox/llmsandbox/internal/e2b/envd/filesystem"
	"github.com/llmsandbox/llmsandbox/internal/e2b/envd/process"
)

// procedure calls one of a sandbox with JSON, as SDKs do.
func procedure[In, Out any](b *box, at string) *connect.Client[In, Out] {
	return connect.NewClient[In, Out](b.client(envd), b.url+at, connect.WithProtoJSON())
}

// A programsClient is a client of the programs of a sandbox.
type programsClient struct{ *box }

func (c programsClient) List(ctx context.Context, req *connect.Request[process.ListRequest]) (*connect.Response[process.ListResponse], error) {
	return procedure[process.ListRequest, process.ListResponse](c.box, processPath+"List").CallUnary(ctx, req)
}

func (c programsClient) Connect(ctx context.Context, req *connect.Request[process.ConnectRequest]) (*connect.ServerStreamForClient[process.ConnectResponse], error) {
	return procedure[process.ConnectRequest, process.ConnectResponse](c.box, processPath+"Connect").CallServerStream(ctx, req)
}

func (c programsClient) Start(ctx context.Context, req *connect.Request[process.StartRequest]) (*connect.ServerStreamForClient[process.StartResponse], error) {
	return procedure[process.StartRequest, process.StartResponse](c.box, processPath+"Start").CallServerStream(ctx, req)
}

func (c programsClient) Update(ctx context.Context, req *connect.Request[process.UpdateRequest]) (*connect.Response[process.UpdateResponse], error) {
	return procedure[process.UpdateRequest, process.UpdateResponse](c.box, processPath+"Update").CallUnary(ctx, req)
}

func (c programsClient) StreamInput(ctx context.Context) *connect.ClientStreamForClient[process.StreamInputRequest, process.StreamInputResponse] {
	return procedure[process.StreamInputRequest, process.StreamInputResponse](c.box, processPath+"StreamInput").CallClientStream(ctx)
}

func (c programsClient) SendInput(ctx context.Context, req *connect.Request[process.SendInputRequest]) (*connect.Response[process.SendInputResponse], error) {
	return procedure[process.SendInputRequest, process.SendInputResponse](c.box, processPath+"SendInput").CallUnary(ctx, req)
}

func (c programsClient) SendSignal(ctx context.Context, req *connect.Request[process.SendSignalRequest]) (*connect.Response[process.SendSignalResponse], error) {
	return procedure[process.SendSignalRequest, process.SendSignalResponse](c.box, processPath+"SendSignal").CallUnary(ctx, req)
}

func (c programsClient) CloseStdin(ctx context.Context, req *connect.Request[process.CloseStdinRequest]) (*connect.Response[process.CloseStdinResponse], error) {
	return procedure[process.CloseStdinRequest, process.CloseStdinResponse](c.box, processPath+"CloseStdin").CallUnary(ctx, req)
}

// A filesClient is a client of the files of a sandbox.
type filesClient struct{ *box }

func (c filesClient) Stat(ctx context.Context, req *connect.Request[filesystem.StatRequest]) (*connect.Response[filesystem.StatResponse], error) {
	return procedure[filesystem.StatRequest, filesystem.StatResponse](c.box, filesystemPath+"Stat").CallUnary(ctx, req)
}

func (c filesClient) MakeDir(ctx context.Context, req *connect.Request[filesystem.MakeDirRequest]) (*connect.Response[filesystem.MakeDirResponse], error) {
	return procedure[filesystem.MakeDirRequest, filesystem.MakeDirResponse](c.box, filesystemPath+"MakeDir").CallUnary(ctx, req)
}

func (c filesClient) Move(ctx context.Context, req *connect.Request[filesystem.MoveRequest]) (*connect.Response[filesystem.MoveResponse], error) {
	return procedure[filesystem.MoveRequest, filesystem.MoveResponse](c.box, filesystemPath+"Move").CallUnary(ctx, req)
}

func (c filesClient) ListDir(ctx context.Context, req *connect.Request[filesystem.ListDirRequest]) (*connect.Response[filesystem.ListDirResponse], error) {
	return procedure[filesystem.ListDirRequest, filesystem.ListDirResponse](c.box, filesystemPath+"ListDir").CallUnary(ctx, req)
}

func (c filesClient) Remove(ctx context.Context, req *connect.Request[filesystem.RemoveRequest]) (*connect.Response[filesystem.RemoveResponse], error) {
	return procedure[filesystem.RemoveRequest, filesystem.RemoveResponse](c.box, filesystemPath+"Remove").CallUnary(ctx, req)
}

func (c filesClient) WatchDir(ctx context.Context, req *connect.Request[filesystem.WatchDirRequest]) (*connect.ServerStreamForClient[filesystem.WatchDirResponse], error) {
	return procedure[filesystem.WatchDirRequest, filesystem.WatchDirResponse](c.box, filesystemPath+"WatchDir").CallServerStream(ctx, req)
}

func (c filesClient) CreateWatcher(ctx context.Context, req *connect.Request[filesystem.CreateWatcherRequest]) (*connect.Response[filesystem.CreateWatcherResponse], error) {
	return procedure[filesystem.CreateWatcherRequest, filesystem.CreateWatcherResponse](c.box, filesystemPath+"CreateWatcher").CallUnary(ctx, req)
}

func (c filesClient) GetWatcherEvents(ctx context.Context, req *connect.Request[filesystem.GetWatcherEventsRequest]) (*connect.Response[filesystem.GetWatcherEventsResponse], error) {
	return procedure[filesystem.GetWatcherEventsRequest, filesystem.GetWatcherEventsResponse](c.box, filesystemPath+"GetWatcherEvents").CallUnary(ctx, req)
}

func (c filesClient) RemoveWatcher(ctx context.Context, req *connect.Request[filesystem.RemoveWatcherRequest]) (*connect.Response[filesystem.RemoveWatcherResponse], error) {
	return procedure[filesystem.RemoveWatcherRequest, filesystem.RemoveWatcherResponse](c.box, filesystemPath+"RemoveWatcher").CallUnary(ctx, req)
}
