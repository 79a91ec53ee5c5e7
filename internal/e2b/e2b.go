// Package e2b serves the protocol of the E2B SDKs on the server's core: the control plane, and of each sandbox what its programs, files and
// kernels answer on the ports 49983 and 49999. Nothing of it listens inside a sandbox.
//
// Requests are told apart from those of the API by their paths, by the header E2b-Sandbox-Id, and by the name PORT-ID.DOMAIN that they are for.
package e2b

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/httpgate"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// The ports of a sandbox that this package answers itself.
const (
	envdPort        = 49983 // programs and files
	interpreterPort = 49999 // contexts, which are kernels
)

// envdVersion says to the SDKs what they can ask for: up to here all but the metadata of files, which came with 0.6.2.
const envdVersion = "0.6.1"

// pieceTime is how long a client may take for each piece of a body, and of an answer.
const pieceTime = 30 * time.Second

// Config is what the server has.
type Config struct {
	Service *service.Service
	// Authenticate returns who a key belongs to. It fails with httpgate.ErrUnknown.
	Authenticate func(ctx context.Context, key string) (database.Caller, error)
	// Begin counts a request of a caller, or fails with an error whose status and text are the answer: see Refusal. begins says that it begins a program or sandbox. end notes
	// what became of it.
	Begin func(ctx context.Context, c database.Caller, operation, sandbox string, begins bool) (end func(status int, sandbox string), err error)
	// Count counts a request with the token of a sandbox, for its project, or fails as Begin does.
	Count func(project string) error
	// Secret, of at least 32 random bytes, is what tokens of sandboxes are made from.
	Secret []byte
	// Domain is the one below which sandboxes have names; empty: there are no names.
	Domain string
	// Scheme is that by which clients reach the server: http or https.
	Scheme string
	// Port hands on a request to a server inside a sandbox. It fails, before it has answered, with fs.ErrNotExist where nothing listens.
	Port func(w http.ResponseWriter, r *http.Request, to *Port) error
	Log  *slog.Logger
}

// A Server serves the protocol. It is safe for concurrent use.
type Server struct {
	cfg     Config
	service *service.Service
	control http.Handler
	envd    http.Handler
	interp  http.Handler
	key     []byte

	mu     sync.Mutex
	lives  map[string]*live       // by the sandbox's id
	timers map[string]*time.Timer // likewise, of those that are paused at their timeouts
	builds builds

	stopping context.Context //nolint:containedctx // it is the server's
	stop     context.CancelFunc
	working  sync.WaitGroup
}

// A live is what the server has of a sandbox as long as both live: what its SDKs have begun.
type live struct {
	ctx context.Context //nolint:containedctx // it is the sandbox's
	end context.CancelFunc

	processes processes
	watchers  watchers
	contexts  contexts
}

// New makes a server. Close ends it.
func New(cfg Config) (*Server, error) {
	key, err := hkdf.Key(sha256.New, cfg.Secret, nil, "llmsandbox e2b 1", sha256.Size)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, service: cfg.Service, key: key, lives: map[string]*live{}, timers: map[string]*time.Timer{}}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.working.Go(s.pauseThoseThereAre)
	s.control, s.envd, s.interp = s.controlRoutes(), s.envdRoutes(), s.interpreterRoutes()
	return s, nil
}

// Close ends streams and watches, and waits for that. Programs and kernels go on as long as their sandboxes.
func (s *Server) Close() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.working.Wait()
}

// Takes reports whether a request is one of this protocol.
func (s *Server) Takes(r *http.Request) bool {
	if r.Header.Get(sandboxHeader) != "" || r.Header.Get(tokenHeader) != "" || s.ofHost(r) != nil || isSigned(r) {
		return true
	}
	// The console has pages at some of these paths, which browsers ask for without a key.
	page := r.Method == http.MethodGet || r.Method == http.MethodHead
	return isControl(r) && (!page || r.Header.Get("X-Api-Key") != "" || r.Header.Get("Authorization") != "")
}

// controlled are what paths of the control plane begin with.
var controlled = map[string]bool{"sandboxes": true, "templates": true, "snapshots": true, "volumes": true, "secrets": true, "default-templates": true}

// isControl reports whether a request's path is one of the control plane.
func isControl(r *http.Request) bool {
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if first == "v2" || first == "v3" {
		first, _, _ = strings.Cut(rest, "/")
	}
	return controlled[first]
}

const (
	sdkHeaders    = "E2b-" // begins those that are for this server
	sandboxHeader = sdkHeaders + "Sandbox-Id"
	portHeader    = sdkHeaders + "Sandbox-Port"
	trafficHeader = sdkHeaders + "Traffic-Access-Token"
	tokenHeader   = "X-Access-Token"
)

// A place is a port of a sandbox that a request is for.
type place struct {
	id   string // as this server has it
	port int
}

// ofHost is what the name of a request's host says, PORT-ID.DOMAIN; nil: it is no such name.
func (s *Server) ofHost(r *http.Request) *place {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	label, ok := strings.CutSuffix(strings.ToLower(host), "."+s.cfg.Domain)
	if !ok || s.cfg.Domain == "" {
		return nil
	}
	digits, id, _ := strings.Cut(label, "-")
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || port == 0 || strconv.FormatUint(port, 10) != digits || innerID(id) == "" { // of each port, there is one name
		return nil
	}
	return &place{innerID(id), int(port)}
}

// place is where a request of the data plane is for.
func (s *Server) place(r *http.Request) (*place, error) {
	named := s.ofHost(r)
	id := r.Header.Get(sandboxHeader)
	if id == "" {
		return named, nil
	}
	id, _, _ = strings.Cut(id, "-") // older SDKs add that of a client
	port, err := strconv.ParseUint(cmp.Or(r.Header.Get(portHeader), strconv.Itoa(envdPort)), 10, 16)
	p := &place{innerID(id), int(port)} // an id that is none is one of no sandbox
	switch {
	case err != nil:
		return nil, refusal(http.StatusBadRequest, "the header "+portHeader+" is no port")
	case named != nil && *named != *p:
		return nil, refusal(http.StatusBadRequest, "the name and the headers are for different sandboxes or ports")
	case named == nil && p.port == envdPort && isControl(r): // older SDKs say to the control plane, too, which sandbox it is about
		return named, nil
	}
	return p, nil
}

// The lengths of the parts of a sandbox's id, between which there are dashes. SDKs' ids have none.
const idHead, idProject, idRest = 2, 8, 16

// outerID is a sandbox's id for SDKs.
func outerID(id string) string { return strings.ReplaceAll(id, "-", "") }

// innerID is what outerID was made from; empty: it is none.
func innerID(id string) string {
	if len(id) != idHead+idProject+idRest || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return ""
	}
	return id[:idHead] + "-" + id[idHead:idHead+idProject] + "-" + id[idHead+idProject:]
}

// accessToken is what a sandbox's programs and files ask for. It is the same for as long as the sandbox lives, at every server with the secret.
func (s *Server) accessToken(id string) string { return s.token("access", id) }

// token is a sandbox's for a purpose.
func (s *Server) token(purpose, id string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(purpose + " " + id))
	return hex.EncodeToString(mac.Sum(nil))
}

// hasToken reports whether a request has a sandbox's token.
func (s *Server) hasToken(r *http.Request, id string) bool {
	return hmac.Equal([]byte(r.Header.Get(tokenHeader)), []byte(s.accessToken(id)))
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := s.ofHost(r); p != nil && p.port != envdPort && p.port != interpreterPort {
		w, r = httpgate.Timed(w, r, pieceTime, pieceTime)
		s.servePort(w, r)
		return
	}
	w, r = timed(w, r)
	if cors(w, r) {
		return
	}
	p, err := s.place(r)
	if s.isNameless(r) {
		p, err = s.namelessPlace(r)
	}
	switch {
	case errors.Is(err, llmsandbox.ErrNotFound):
		s.answerGone(w, r, "", err)
		return
	case err != nil:
		answer(w, err)
		return
	case p == nil:
		s.control.ServeHTTP(w, r)
		return
	}
	// Who shows nothing of the sandbox does not have the server ask its backend for it.
	shown := s.hasToken(r, p.id) || s.hasTrafficToken(r, p.id) || isSigned(r) && s.checkSignature(r, p.id) == nil
	t, err := s.target(r.Context(), p.id, shown)
	if err != nil {
		s.answerGone(w, r, p.id, err)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), targetKey{}, t))
	if shown && r.URL.Path != healthPath {
		if err := s.cfg.Count(t.project); err != nil {
			s.answerTooMany(w, r, p.port, s.refusalOf(r.Context(), err))
			return
		}
	}
	if err := s.wakeFor(r.Context(), t, shown && r.URL.Path != healthPath); err != nil {
		s.answerGone(w, r, p.id, err)
		return
	}
	switch p.port {
	case envdPort:
		s.envd.ServeHTTP(w, r)
	case interpreterPort:
		s.interp.ServeHTTP(w, r)
	default:
		// What code in sandboxes serves must not be at the server's own name, where its console is.
		answer(w, refusal(http.StatusBadRequest, fmt.Sprintf("port %d: this server serves it by its name only, PORT-ID.DOMAIN, where it has a domain: --ports-domain", p.port)))
	}
}

// A target is the sandbox that a request of the data plane is for.
type target struct {
	id, project string
	sandbox     *llmsandbox.Sandbox
	live        *live
}

type targetKey struct{}

// targetOf is the target of a request that ServeHTTP has handed on.
func targetOf(ctx context.Context) *target {
	t, _ := ctx.Value(targetKey{}).(*target)
	return t
}

// target finds a sandbox, where look is not set only one that the server holds already. It fails with llmsandbox.ErrNotFound.
func (s *Server) target(ctx context.Context, id string, look bool) (*target, error) {
	project, err := s.service.Owner(ctx, id, look)
	if err != nil {
		return nil, err
	}
	sb, err := s.service.Get(ctx, project, id)
	if err != nil {
		return nil, err
	}
	return &target{id: id, project: project, sandbox: sb, live: s.live(sb)}, nil
}

// live is what the server has of a sandbox.
func (s *Server) live(sb *llmsandbox.Sandbox) *live {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lives[sb.ID()]
	if l != nil {
		return l
	}
	l = &live{}
	l.ctx, l.end = context.WithCancel(s.stopping)
	s.lives[sb.ID()] = l
	if s.stopping.Err() != nil {
		return l
	}
	s.working.Go(func() {
		select {
		case <-sb.Done():
		case <-l.ctx.Done():
		}
		l.end()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.lives, sb.ID())
	})
	return l
}

// A Refusal is an answer with a status that is no success.
type Refusal struct {
	Status  int
	Message string
	Header  http.Header
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

func refusal(status int, message string) *Refusal { return &Refusal{Status: status, Message: message} }

// refusalOf is what an error is for a client: what is none of its business, it does not hear.
func (s *Server) refusalOf(ctx context.Context, err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	if p := known(err); p != nil {
		return p
	}
	if ctx.Err() == nil {
		s.cfg.Log.ErrorContext(ctx, "a request of an SDK failed", "error", err)
	}
	return refusal(http.StatusInternalServerError, "the server failed: its log says why")
}

// body is that of every answer that is no success.
type body struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// answer sends an error.
func answer(w http.ResponseWriter, err error) {
	var r *Refusal
	if !errors.As(err, &r) {
		r = refusal(http.StatusInternalServerError, "the server failed: its log says why")
	}
	for name, values := range r.Header {
		w.Header()[name] = values
	}
	if r.Status >= http.StatusNotImplemented && r.Header.Get("Retry-After") == "" {
		w.Header().Set("Should-Retry", "false")
	}
	send(w, r.Status, body{r.Status, r.Message})
}

// send sends JSON.
func send(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"code":500,"message":"the answer could not be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that is gone hears nothing
}
