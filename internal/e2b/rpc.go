package e2b

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/httpgate"
)

const (
	// processPath and filesystemPath are those of the services, below which each procedure has its name.
	processPath, filesystemPath = "/process.Process/", "/filesystem.Filesystem/"
	// maxMessage bounds a message of a client, which is read into memory.
	maxMessage = 8 << 20
	// usualKeepalive is the time between two signs of life of a stream whose client asks for none.
	usualKeepalive = 90 * time.Second
	// ordinaryUser is how SDKs call the user of a sandbox.
	ordinaryUser = "user"
)

// rpcCodes are the codes of Connect for the statuses of refusals.
var rpcCodes = map[int]connect.Code{
	http.StatusBadRequest:            connect.CodeInvalidArgument,
	http.StatusUnauthorized:          connect.CodeUnauthenticated,
	http.StatusForbidden:             connect.CodePermissionDenied,
	http.StatusNotFound:              connect.CodeNotFound,
	http.StatusConflict:              connect.CodeAlreadyExists,
	http.StatusRequestEntityTooLarge: connect.CodeOutOfRange,
	http.StatusTooManyRequests:       connect.CodeResourceExhausted,
	http.StatusServiceUnavailable:    connect.CodeUnavailable,
	http.StatusInsufficientStorage:   connect.CodeFailedPrecondition, // that of too much at once has SDKs speak of a rate
}

var rpcOptions = connect.WithHandlerOptions(connect.WithReadMaxBytes(maxMessage), connect.WithCompression("gzip", nil, nil))

// unary serves a procedure that answers once.
func unary[In, Out any](mux *http.ServeMux, at string, do func(context.Context, *connect.Request[In]) (*connect.Response[Out], error)) {
	mux.Handle(at, connect.NewUnaryHandler(at, do, rpcOptions))
}

// streaming serves a procedure that answers with a stream.
func streaming[In, Out any](mux *http.ServeMux, at string, do func(context.Context, *connect.Request[In], *connect.ServerStream[Out]) error) {
	mux.Handle(at, connect.NewServerStreamHandler(at, do, rpcOptions))
}

// rpcError is an error as clients of Connect hear it.
func (s *Server) rpcError(ctx context.Context, err error) error {
	var known *connect.Error
	switch {
	case errors.As(err, &known):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case isGone(err):
		return connect.NewError(connect.CodeUnavailable, refusal(http.StatusBadGateway, goneMessage))
	}
	r := s.refusalOf(ctx, err)
	code, ok := rpcCodes[r.Status]
	if !ok {
		code = connect.CodeInternal
	}
	return connect.NewError(code, errors.New(valid(r.Message)))
}

// isGone reports whether an error is that the sandbox has ended.
func isGone(err error) bool {
	return errors.Is(err, llmsandbox.ErrClosed) || errors.Is(err, llmsandbox.ErrNotFound)
}

// valid is text for protobuf and JSON: some comes from inside.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// streams are the requests whose answers are streams. A client that does not take one holds up what is followed, for as long as it likes, and its connection
// is watched by the system.
var streams = []string{processPath + "Start", processPath + "Connect", filesystemPath + "WatchDir"}

// timed bounds how long a client may take for each piece of a body and of an answer.
func timed(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request) {
	if r.URL.Path == processPath+"StreamInput" {
		return w, r // it comes when the client has it
	}
	answer, r := httpgate.Timed(w, r, pieceTime, pieceTime)
	if slices.Contains(streams, r.URL.Path) {
		answer = w
	}
	return answer, r
}

// userOf is the user that a request of Connect names; empty: none.
func userOf(h http.Header) string {
	user, _, _ := (&http.Request{Header: h}).BasicAuth()
	return user
}

// keepaliveOf is how often a stream is to show that it lives.
func keepaliveOf(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Keepalive-Ping-Interval"), 10, 16)
	if err != nil || seconds == 0 {
		return usualKeepalive
	}
	return time.Duration(seconds) * time.Second
}

// background does something that Close waits for.
func (s *Server) background(do func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Err() != nil {
		return refusal(http.StatusServiceUnavailable, "the server is stopping")
	}
	s.working.Go(do)
	return nil
}
