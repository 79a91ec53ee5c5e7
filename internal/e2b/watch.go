package e2b

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/e2b/envd/filesystem"
)

const (
	// maxWatchers bounds the watchers of a sandbox: the server keeps events for each, and the sandbox's kernel too.
	maxWatchers = 32
	// maxPending bounds the bytes of events that a watcher keeps for a client that does not ask for them. Code inside makes them.
	maxPending = 1 << 20
	// eventSize is about what an event takes beside its bytes.
	eventSize = 128
	// maxIdle is how long a watcher lives whose events nobody asks for.
	maxIdle = 15 * time.Minute
	// patience is how long an answer waits at most for watchers to see what it tells of. They may not: the kernel drops events when there are too many.
	patience = time.Second
)

// watchers are the watches of directories that SDKs ask for events.
type watchers struct {
	mu  sync.Mutex
	all map[string]*watcher // by id
}

// A watcher keeps what happens in a directory until it is asked for.
type watcher struct {
	dir       string // without links
	recursive bool
	polled    bool
	entry     func(ctx context.Context, p string) *filesystem.EntryInfo // nil: events have none
	end       context.CancelFunc
	wake      chan struct{} // there is something new
	done      chan struct{} // closed at the end
	idle      *time.Timer

	mu      sync.Mutex
	pending []*filesystem.FilesystemEvent
	size    int
	lost    bool
	err     error // why it has ended
	awaited []*sighting
}

// A sighting is what a watcher has seen of a path since somebody began to wait for it.
type sighting struct {
	ctx  context.Context //nolint:containedctx // it is for as long as somebody waits
	path string
	seen []filesystem.EventType
	came chan filesystem.EventType // the first of each type
}

var errTooManyWatchers = refusal(http.StatusTooManyRequests, fmt.Sprintf("the sandbox has %d watchers: stop some", maxWatchers))

// add makes a watcher that is dropped once it is polled and nobody asks for its events. It watches nothing yet.
func (ws *watchers) add(ctx context.Context, w *watcher) (id string, watched context.Context, err error) {
	id = strings.ToLower(rand.Text())
	watched, w.end = context.WithCancel(ctx)
	w.wake, w.done = make(chan struct{}, 1), make(chan struct{})
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.all) >= maxWatchers {
		w.end()
		return "", nil, errTooManyWatchers
	}
	if ws.all == nil {
		ws.all = map[string]*watcher{}
	}
	ws.all[id] = w
	if w.polled {
		w.idle = time.AfterFunc(maxIdle, func() { ws.remove(id) })
		context.AfterFunc(watched, func() { w.idle.Stop() })
	}
	return id, watched, nil
}

// polled is the watcher with an id; nil: there is none.
func (ws *watchers) polled(id string) *watcher {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.all[id]
	if w == nil || !w.polled {
		return nil
	}
	w.idle.Reset(maxIdle)
	return w
}

func (ws *watchers) remove(id string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.all[id]; w != nil {
		w.end()
		delete(ws.all, id)
	}
}

// expect begins to wait for the event of something that is about to happen at an absolute path. What it returns waits until it has come to all that watch
// there: so it is in the answer to a client that asks for events next.
func (ws *watchers) expect(ctx context.Context, r *resolver, p string) (seen func(filesystem.EventType)) {
	ws.mu.Lock()
	all := make([]*watcher, 0, len(ws.all))
	for _, w := range ws.all {
		all = append(all, w)
	}
	ws.mu.Unlock()
	if len(all) == 0 {
		return func(filesystem.EventType) {}
	}
	dir, _, err := r.resolve(ctx, path.Dir(p))
	at, made := path.Join(dir, path.Base(p)), false
	if errors.Is(err, fs.ErrNotExist) { // it is made, with all below it
		at, made = r.missing, true
	}
	waiting, forget := context.WithCancel(ctx)
	awaited := map[*watcher]*sighting{}
	for _, w := range all {
		if w.covers(at) {
			awaited[w] = w.await(waiting, at)
		}
	}
	return func(event filesystem.EventType) {
		defer forget()
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if made {
			event = filesystem.EventType_EVENT_TYPE_CREATE
		}
		for w, s := range awaited {
			w.wait(ctx, s, event)
		}
	}
}

func (w *watcher) covers(p string) bool {
	name, ok := w.name(p)
	return ok && (w.recursive || !strings.Contains(name, "/"))
}

// name is that of a path within the directory; ok is false for what is not in it.
func (w *watcher) name(p string) (name string, ok bool) {
	return strings.CutPrefix(p, strings.TrimSuffix(w.dir, "/")+"/")
}

func (w *watcher) await(ctx context.Context, p string) *sighting {
	s := &sighting{ctx: ctx, path: p, came: make(chan filesystem.EventType, len(filesystem.EventType_name))}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awaited = slices.DeleteFunc(w.awaited, func(s *sighting) bool { return s.ctx.Err() != nil })
	w.awaited = append(w.awaited, s)
	return s
}

// wait waits until an event was seen or cannot be any more.
func (w *watcher) wait(ctx context.Context, s *sighting, event filesystem.EventType) {
	for came := filesystem.EventType_EVENT_TYPE_UNSPECIFIED; came != event; {
		select {
		case came = <-s.came:
		case <-w.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// eventTypes are the types of what happens to files.
var eventTypes = map[llmsandbox.FileOp]filesystem.EventType{
	llmsandbox.FileCreated: filesystem.EventType_EVENT_TYPE_CREATE,
	llmsandbox.FileWritten: filesystem.EventType_EVENT_TYPE_WRITE,
	llmsandbox.FileRemoved: filesystem.EventType_EVENT_TYPE_REMOVE,
	llmsandbox.FileRenamed: filesystem.EventType_EVENT_TYPE_RENAME,
	llmsandbox.FileChmod:   filesystem.EventType_EVENT_TYPE_CHMOD,
}

// collect keeps the events until they end.
func (w *watcher) collect(ctx context.Context, events iter.Seq2[llmsandbox.FileEvent, error]) {
	defer close(w.done)
	for e, err := range events {
		if err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			return
		}
		w.keep(ctx, e)
	}
}

// keep keeps an event. One like the last, as a longer write makes many, is none.
func (w *watcher) keep(ctx context.Context, e llmsandbox.FileEvent) {
	name, inside := w.name(e.Path)
	event := &filesystem.FilesystemEvent{Name: valid(name), Type: eventTypes[e.Op]}
	if event.Type == filesystem.EventType_EVENT_TYPE_UNSPECIFIED {
		w.lose()
		return
	}
	if !inside { // it is the directory's own, which has no name in it
		return
	}
	if w.entry != nil {
		event.Entry = w.entry(ctx, e.Path)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.pending); n == 0 || w.pending[n-1].GetName() != event.GetName() || w.pending[n-1].GetType() != event.GetType() {
		w.pending = append(w.pending, event)
		w.size += proto.Size(event) + eventSize
	} else {
		w.pending[n-1] = event
	}
	if w.size > maxPending {
		w.pending, w.size, w.lost = nil, 0, true
	}
	for _, s := range w.awaited {
		if s.path == e.Path && !slices.Contains(s.seen, event.Type) {
			s.seen = append(s.seen, event.Type)
			s.came <- event.Type // there is room for one of each type
		}
	}
	w.signal()
}

func (w *watcher) lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending, w.size, w.lost = nil, 0, true
	w.signal()
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // it was signalled before
	}
}

// take returns the events that are kept, and keeps them no longer. It fails once events were lost, and with why the watch has ended after the last of them.
func (w *watcher) take() ([]*filesystem.FilesystemEvent, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost {
		w.lost = false
		return nil, connect.NewError(connect.CodeDataLoss, errors.New("more happened than was kept: list the directory again"))
	}
	events := w.pending
	w.pending, w.size = nil, 0
	if len(events) == 0 {
		return nil, w.err
	}
	return events, nil
}

// begin begins to watch a directory as a client asks.
func (f fileService) begin(ctx context.Context, h http.Header, p string, w *watcher, entries bool) (id string, err error) {
	t := targetOf(ctx)
	p, err = t.path(userOf(h), p)
	if err != nil {
		return "", f.rpcError(ctx, fault(err))
	}
	real, i, err := newResolver(t.sandbox).resolve(ctx, p)
	if err == nil && !i.IsDir() {
		err = refusal(http.StatusBadRequest, fmt.Sprintf("path '%s' is not a directory", valid(p)))
	}
	if err != nil {
		return "", f.rpcError(ctx, fault(err))
	}
	w.dir = real
	if entries {
		w.entry = func(ctx context.Context, changed string) *filesystem.EntryInfo {
			name, _ := w.name(changed)
			e, err := newResolver(t.sandbox).entryAt(ctx, path.Join(p, name))
			if err != nil {
				return nil // it is gone
			}
			return e
		}
	}
	id, watched, err := t.live.watchers.add(t.live.ctx, w)
	if err != nil {
		return "", f.rpcError(ctx, fault(err))
	}
	leave := context.AfterFunc(ctx, w.end)
	events, err := t.sandbox.Watch(watched, real, w.recursive)
	if err == nil {
		err = f.background(func() { w.collect(watched, events) })
	}
	if err == nil && w.polled && !leave() {
		err = ctx.Err()
	}
	if err != nil {
		t.live.watchers.remove(id)
		return "", f.rpcError(ctx, fault(err))
	}
	return id, nil
}

// WatchDir serves the procedure of that name.
func (f fileService) WatchDir(
	ctx context.Context, req *connect.Request[filesystem.WatchDirRequest], stream *connect.ServerStream[filesystem.WatchDirResponse],
) error {
	w := &watcher{recursive: req.Msg.GetRecursive()}
	id, err := f.begin(ctx, req.Header(), req.Msg.GetPath(), w, req.Msg.GetIncludeEntry())
	if err != nil {
		return err
	}
	t := targetOf(ctx)
	defer t.live.watchers.remove(id)
	start := &filesystem.WatchDirResponse_Start{Start: &filesystem.WatchDirResponse_StartEvent{}}
	if err := stream.Send(&filesystem.WatchDirResponse{Event: start}); err != nil {
		return err
	}
	alive := time.NewTicker(keepaliveOf(req.Header()))
	defer alive.Stop()
	for ended := false; ; {
		select {
		case <-w.wake:
		case <-w.done:
			ended = true
		case <-alive.C:
			lives := &filesystem.WatchDirResponse_Keepalive{Keepalive: &filesystem.WatchDirResponse_KeepAlive{}}
			if err := stream.Send(&filesystem.WatchDirResponse{Event: lives}); err != nil {
				return err
			}
			continue
		}
		events, err := w.take()
		for _, e := range events {
			if err := stream.Send(&filesystem.WatchDirResponse{Event: &filesystem.WatchDirResponse_Filesystem{Filesystem: e}}); err != nil {
				return err
			}
		}
		switch {
		case err != nil && ctx.Err() == nil && (t.live.ctx.Err() != nil || isGone(err) || errors.Is(err, llmsandbox.ErrLost)):
			t.cut(ctx)
		case err != nil:
			return f.rpcError(ctx, fault(err))
		case ended && len(events) == 0:
			return nil
		}
	}
}

// cut ends a stream without its end, as the sandbox has gone: then a client asks for its health. So it waits until that is known everywhere.
func (t *target) cut(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-t.live.ctx.Done():
	case <-ctx.Done(): // the sandbox may live: it is the connection to it that was lost
	}
	panic(http.ErrAbortHandler)
}

// CreateWatcher serves the procedure of that name.
func (f fileService) CreateWatcher(
	ctx context.Context, req *connect.Request[filesystem.CreateWatcherRequest],
) (*connect.Response[filesystem.CreateWatcherResponse], error) {
	id, err := f.begin(ctx, req.Header(), req.Msg.GetPath(), &watcher{recursive: req.Msg.GetRecursive(), polled: true}, req.Msg.GetIncludeEntry())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&filesystem.CreateWatcherResponse{WatcherId: id}), nil
}

// errNoWatcher says why, as the client may have had it.
var errNoWatcher = connect.NewError(connect.CodeNotFound, fmt.Errorf(
	"there is no such watcher: it was stopped, nobody asked for its events for %v, or its directory is gone", maxIdle))

// GetWatcherEvents serves the procedure of that name.
func (f fileService) GetWatcherEvents(
	ctx context.Context, req *connect.Request[filesystem.GetWatcherEventsRequest],
) (*connect.Response[filesystem.GetWatcherEventsResponse], error) {
	ws := &targetOf(ctx).live.watchers
	w := ws.polled(req.Msg.GetWatcherId())
	if w == nil {
		return nil, errNoWatcher
	}
	events, err := w.take()
	if connect.CodeOf(err) == connect.CodeDataLoss {
		return nil, err
	}
	if err != nil {
		ws.remove(req.Msg.GetWatcherId())
		return nil, errNoWatcher
	}
	return connect.NewResponse(&filesystem.GetWatcherEventsResponse{Events: events}), nil
}

// RemoveWatcher serves the procedure of that name.
func (f fileService) RemoveWatcher(
	ctx context.Context, req *connect.Request[filesystem.RemoveWatcherRequest],
) (*connect.Response[filesystem.RemoveWatcherResponse], error) {
	ws := &targetOf(ctx).live.watchers
	if ws.polled(req.Msg.GetWatcherId()) == nil {
		return nil, errNoWatcher
	}
	ws.remove(req.Msg.GetWatcherId())
	return connect.NewResponse(&filesystem.RemoveWatcherResponse{}), nil
}
