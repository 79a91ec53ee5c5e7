package supervisor

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

// maxRecords bounds the records that have not ended: a client may be killed before it ends its own.
const maxRecords = 256

// A Server answers for one sandbox.
type Server struct {
	owner  Owner
	http   http.Server
	parent *os.File // the directory of its socket
	done   chan struct{}
	err    error

	mu      sync.Mutex
	records map[string]*gateway.Record
	order   []string
}

// Serve begins to listen for those who attach to the sandbox. Close must be called.
func Serve(backend, id string, owner Owner) (*Server, error) {
	d, err := dir()
	if err != nil {
		return nil, err
	}
	for _, p := range []string{filepath.Dir(d), d} {
		if err := layerstore.MakePrivate(p); err != nil {
			return nil, fmt.Errorf("the directory for the supervisor's socket: %w", err)
		}
	}
	path := socket(d, backend, id)
	// One that is there was left by a supervisor that was killed: the id is ours.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	parent, err := os.Open(d)
	if err != nil {
		return nil, fmt.Errorf("the directory for the supervisor's socket: %w", err)
	}
	l, err := net.Listen("unix", address(parent, path)) // which Close removes
	if err != nil {
		_ = parent.Close() // nothing was written
		return nil, fmt.Errorf("listen for those who attach to the sandbox: %s: %w", path, errors.Unwrap(err))
	}
	s := &Server{owner: owner, parent: parent, done: make(chan struct{}), records: map[string]*gateway.Record{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /network", s.handle(func(*http.Request) (any, error) { return owner.Network(), nil }))
	mux.HandleFunc("PUT /network", s.handle(s.setNetwork))
	mux.HandleFunc("POST /network/records", s.handle(s.begin))
	mux.HandleFunc("DELETE /network/records/{id}", s.handle(s.end))
	mux.HandleFunc("POST /reset", s.handle(func(r *http.Request) (any, error) { return struct{}{}, owner.Reset(r.Context()) }))
	s.http = http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.err = err
		}
	}()
	return s, nil
}

// Close ends what is being answered.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return errors.Join(err, s.err, s.parent.Close())
}

func (s *Server) handle(answer func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		out, err := answer(r)
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			out = &Error{Text: err.Error(), Kind: s.owner.Kind(err)}
		}
		_ = json.NewEncoder(w).Encode(out) // who asked may be gone
	}
}

func (s *Server) setNetwork(r *http.Request) (any, error) {
	var n Network
	if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	return struct{}{}, s.owner.SetNetwork(r.Context(), n.Mode, n.Allow)
}

func (s *Server) begin(*http.Request) (any, error) {
	record := s.owner.Record()
	if record == nil {
		return recordID{}, nil
	}
	id := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[id] = record
	s.order = append(s.order, id)
	for len(s.order) > maxRecords {
		s.records[s.order[0]].End(0)
		s.forget(s.order[0])
	}
	return recordID{id}, nil
}

// forget is called with mu held.
func (s *Server) forget(id string) *gateway.Record {
	r := s.records[id]
	delete(s.records, id)
	for i, other := range s.order {
		if other == id {
			s.order = append(s.order[:i], s.order[i+1:]...)
			break
		}
	}
	return r
}

func (s *Server) end(r *http.Request) (any, error) {
	ms, err := strconv.ParseUint(r.URL.Query().Get("settle_ms"), 10, 16)
	if err != nil {
		return nil, fmt.Errorf("settle_ms: %w", err)
	}
	s.mu.Lock()
	record := s.forget(r.PathValue("id"))
	s.mu.Unlock()
	if record == nil {
		return nil, errors.New("the record of the network's attempts was dropped: too many had not ended")
	}
	attempts, dropped := record.End(time.Duration(ms) * time.Millisecond)
	return Attempts{attempts, dropped}, nil
}
