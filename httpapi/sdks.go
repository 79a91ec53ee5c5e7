package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/e2b"
)

// SDKPrefix begins the operations of events that are requests of E2B's SDKs.
const SDKPrefix = "e2b/"

// addSDKs has the server answer E2B's SDKs beside the clients of its API.
func (s *Server) addSDKs() error {
	if s.cfg.Authenticate == nil {
		return fmt.Errorf("httpapi: Config.E2B: %w: without keys, every page in a browser on this machine could use it: set Authenticate", llmsandbox.ErrInvalid)
	}
	if s.cfg.Replicas != nil {
		return fmt.Errorf("httpapi: Config.E2B: %w: requests of SDKs are not forwarded to other servers yet: leave out Replicas", llmsandbox.ErrUnsupported)
	}
	secret := s.cfg.Secret
	if secret == nil {
		secret = make([]byte, secretSize)
		rand.Read(secret) // never fails
	}
	sdks, err := e2b.New(e2b.Config{
		Service: s.service, Authenticate: s.cfg.Authenticate, Begin: s.beginOfSDK, Count: s.countOfSDK, Secret: secret, Domain: s.cfg.PortsDomain, Scheme: s.scheme(), Port: s.toSDKPort, Log: s.cfg.Log,
	})
	if err != nil {
		return err
	}
	s.sdks = sdks
	api, handler := s.handler, recovered(s.cfg.Log, sdks)
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sdks.Takes(r) {
			handler.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
	return nil
}

// beginOfSDK counts a request of an SDK as one of its key, and notes what becomes of it.
func (s *Server) beginOfSDK(ctx context.Context, caller Caller, operation, sandbox string, begins bool) (end func(status int, sandbox string), err error) {
	if p := s.tooMany(caller); p != nil {
		return nil, &e2b.Refusal{Status: p.Status, Message: p.Detail, Header: p.headers}
	}
	if begins {
		if err := s.service.Admit(ctx, caller.Project); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	return func(status int, made string) {
		outcome := "ok"
		if status >= http.StatusBadRequest {
			outcome = http.StatusText(status)
		}
		if slices.Contains([]string{"list", "info", "metrics"}, operation) {
			return
		}
		if made != "" {
			sandbox = made
		}
		s.note(by(caller, AuditEvent{Time: start, Operation: SDKPrefix + operation, Sandbox: sandbox, Status: status, Outcome: outcome}))
	}, nil
}

// countOfSDK counts a request with the token of a sandbox, which does not tell whose key has got it: all those of a project count together, as those of one key.
func (s *Server) countOfSDK(project string) error {
	if p := s.tooSoon(project+"/", "the project's sandboxes are sent"); p != nil {
		return &e2b.Refusal{Status: p.Status, Message: p.Detail, Header: p.headers}
	}
	return nil
}

// toSDKPort hands on a request for a port by the name that SDKs have for it.
func (s *Server) toSDKPort(w http.ResponseWriter, r *http.Request, to *e2b.Port) (err error) {
	ctx, leave, err := s.sockets.enter(r.Context(), to.Project)
	if err != nil {
		return err
	}
	defer leave()
	p := &portProxy{sandbox: to.Sandbox, port: to.Port, own: true, asked: to.Host}
	withSocketKey(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // which does not go inside
		p.serve(&portWriter{ResponseWriter: w, status: w.WriteHeader, header: http.Header{}}, r, s.cfg.Log, func(failed error) { err = failed })
	})).ServeHTTP(w, r.WithContext(ctx))
	if errors.Is(err, errPortAnswer) || errors.Is(err, os.ErrDeadlineExceeded) {
		why := s.portProblem(ctx, int(to.Port), err)
		return &e2b.Refusal{Status: why.Status, Message: why.Detail, Header: why.headers}
	}
	return err
}
