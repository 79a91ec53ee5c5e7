package e2b

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

const (
	// maxContexts bounds those of a sandbox, since each may be a process there and takes memory here.
	maxContexts = 32
	// maxExecutions bounds those of a sandbox that run or wait for others of their context.
	maxExecutions = 64
	// maxCode bounds the body of a request.
	maxCode = 4 << 20
	// keepalive is how often a client hears something, by which either side notices that the other is gone.
	keepalive = 5 * time.Second
	// restoreTime bounds how long it may take to set variables back after an execution.
	restoreTime = 10 * time.Second
	// lostTime is how long after a kernel was lost it may become known that its sandbox was.
	lostTime = 3 * time.Second
)

// contexts are the kernels that SDKs run code in. They are forgotten with the server: a kernel that it had goes on as long as its sandbox.
type contexts struct {
	mu         sync.Mutex
	begun      bool // those that are there from the start are
	list       []*codeContext
	executions int
}

// A codeContext is a kernel that is opened when code is first run in it: nobody fills a sandbox with processes who has no token.
type codeContext struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Dir      string `json:"cwd"`

	common bool // it is its language's where a request names none
	turn   chan struct{}

	mu      sync.Mutex
	kernel  *llmsandbox.Kernel
	process processState // the kernel's
	removed bool
}

// A processState is what is known of the one of a kernel. Another takes its place when it ends.
type processState struct {
	count  int  // of executions
	shower bool // it shows data: see showData
}

// interpreterRoutes are those of a sandbox's port for contexts.
//
// The SDKs send the sandbox's token with /execute alone, from e2b-code-interpreter 2.11 on at the latest, so that the other routes have to do without. Who knows
// a sandbox's id, which is random, can list, make, restart and remove contexts, but runs no code, and reads nothing of it. Where its ports are not public, all
// of them need the token for that, which the SDKs send.
func (s *Server) interpreterRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) { send(w, http.StatusOK, "OK") })
	mux.HandleFunc("POST /execute", s.execute)
	mux.HandleFunc("GET /contexts", func(w http.ResponseWriter, r *http.Request) { send(w, http.StatusOK, contextsOf(r).all()) })
	mux.HandleFunc("POST /contexts", s.newContext)
	mux.HandleFunc("DELETE /contexts/{id}", s.withContext(func(t *target, c *codeContext) error {
		t.live.contexts.remove(c)
		return c.close(s, t)
	}))
	mux.HandleFunc("POST /contexts/{id}/restart", s.withContext(func(t *target, c *codeContext) error {
		c.mu.Lock()
		kernel := c.kernel
		c.process = processState{}
		c.mu.Unlock()
		if kernel == nil {
			return nil // it has nothing to forget
		}
		return kernel.Restart(t.live.ctx)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t := targetOf(r.Context()); !s.mayUsePorts(r, t.id, t.sandbox.Labels()) {
			answerText(w, refusal(http.StatusForbidden, trafficRefusal))
			return
		}
		if (r.URL.Path == "/execute" || r.Header.Get(tokenHeader) != "") && !s.hasToken(r, targetOf(r.Context()).id) {
			answerText(w, refusal(http.StatusUnauthorized, "the header "+tokenHeader+" is not the sandbox's token"))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// answerText sends an error as the SDKs show it: as text.
func answerText(w http.ResponseWriter, r *Refusal) {
	for name, values := range r.Header {
		w.Header()[name] = values
	}
	http.Error(w, r.Message, r.Status)
}

// readText reads the JSON of a body.
func readText(w http.ResponseWriter, r *http.Request, v any) *Refusal {
	body, refused := readBody(w, r, maxCode)
	if refused != nil {
		return refused
	}
	return decode(body, v)
}

// contextsOf are those of the sandbox that a request is for.
func contextsOf(r *http.Request) *contexts {
	t := targetOf(r.Context())
	cs := &t.live.contexts
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if !cs.begun {
		cs.begun = true
		for _, language := range []string{"python", "javascript"} {
			cs.list = append(cs.list, newCodeContext(language, t.sandbox.Workdir(), true))
		}
	}
	return cs
}

func newCodeContext(language, dir string, common bool) *codeContext {
	return &codeContext{ID: strings.ToLower(rand.Text()), Language: language, Dir: dir, common: common, turn: make(chan struct{}, 1)}
}

func (cs *contexts) all() []*codeContext {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return append([]*codeContext{}, cs.list...)
}

// find returns the first context that has a property.
func (cs *contexts) find(has func(*codeContext) bool) *codeContext {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if i := slices.IndexFunc(cs.list, has); i >= 0 {
		return cs.list[i]
	}
	return nil
}

// add adds a context, unless there is a common one of its language already, which is returned then.
func (cs *contexts) add(c *codeContext) (*codeContext, *Refusal) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if i := slices.IndexFunc(cs.list, func(o *codeContext) bool { return c.common && o.common && o.Language == c.Language }); i >= 0 {
		return cs.list[i], nil
	}
	if len(cs.list) >= maxContexts {
		return nil, refusal(http.StatusTooManyRequests, fmt.Sprintf("the sandbox has %d contexts, which is the most there may be: remove one", maxContexts))
	}
	cs.list = append(cs.list, c)
	return c, nil
}

func (cs *contexts) remove(c *codeContext) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.list = slices.DeleteFunc(cs.list, func(o *codeContext) bool { return o == c })
}

// enter counts an execution, until leave is called.
func (cs *contexts) enter() (leave func(), refused *Refusal) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.executions >= maxExecutions {
		return nil, refusal(http.StatusTooManyRequests, fmt.Sprintf("%d executions run or wait in this sandbox, which is the most there may be: wait for one", maxExecutions))
	}
	cs.executions++
	return func() {
		cs.mu.Lock()
		defer cs.mu.Unlock()
		cs.executions--
	}, nil
}

// languageOf is the name of a language that has kernels; empty stands for Python.
func languageOf(name string) (string, *Refusal) {
	l, err := all.Get(cmp.Or(name, "python"))
	switch {
	case err != nil:
		return "", refusal(http.StatusInternalServerError, err.Error())
	case l.Kernel == nil:
		return "", refusal(http.StatusInternalServerError, "there are no contexts for "+l.Title)
	}
	return l.Name, nil
}

func (s *Server) newContext(w http.ResponseWriter, r *http.Request) {
	var in struct{ Language, Cwd string }
	refused := readText(w, r, &in)
	var language string
	if refused == nil {
		language, refused = languageOf(in.Language)
	}
	dir := in.Cwd
	if !path.IsAbs(dir) {
		dir = path.Join(targetOf(r.Context()).sandbox.Workdir(), dir)
	}
	if refused == nil && (len(dir) > 4096 || strings.Contains(dir, "\x00")) {
		refused = refusal(http.StatusInternalServerError, "cwd is no path")
	}
	var made *codeContext
	if refused == nil {
		made, refused = contextsOf(r).add(newCodeContext(language, dir, false))
	}
	if refused != nil {
		answerText(w, refused)
		return
	}
	send(w, http.StatusOK, made)
}

// withContext answers with null, once do is done with the context that a path names.
func (s *Server) withContext(do func(*target, *codeContext) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := contextsOf(r).find(func(c *codeContext) bool { return c.ID == r.PathValue("id") })
		if c == nil {
			answerText(w, refusal(http.StatusNotFound, "Context ID not found"))
			return
		}
		if err := do(targetOf(r.Context()), c); err != nil && !errors.Is(err, llmsandbox.ErrKernelClosed) {
			answerText(w, s.refusalOf(r.Context(), err))
			return
		}
		send(w, http.StatusOK, nil)
	}
}

// open returns the context's kernel, ready to run code. The caller holds the turn.
func (c *codeContext) open(ctx context.Context, s *Server, t *target) (*llmsandbox.Kernel, error) {
	c.mu.Lock()
	k := c.kernel
	c.mu.Unlock()
	if k == nil {
		var err error
		// It is let go of with the sandbox, or with the service.
		if k, _, err = s.service.OpenKernel(ctx, t.project, t.id, c.Language, &llmsandbox.KernelOptions{Dir: c.Dir}); err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.kernel, c.process = k, processState{}
		removed := c.removed
		c.mu.Unlock()
		if removed {
			return nil, errors.Join(errRemoved, c.close(s, t))
		}
	}
	c.mu.Lock()
	shows := c.process.shower
	c.process.shower = true
	c.mu.Unlock()
	if shows || k.Info().Flavor != "ipython" {
		return k, nil
	}
	_, err := k.Run(ctx, showData, nil) // where code does not run, data has fewer forms
	return k, err
}

var errRemoved = errors.New("the context has been removed")

// close ends the context's kernel, and with it what runs there.
func (c *codeContext) close(s *Server, t *target) error {
	c.mu.Lock()
	k := c.kernel
	c.kernel, c.removed = nil, true
	c.mu.Unlock()
	if k == nil {
		return nil
	}
	return s.service.CloseKernel(t.live.ctx, t.project, t.id, k.Info().ID)
}

// forget has the next execution open another kernel, where this one is closed.
func (c *codeContext) forget(k *llmsandbox.Kernel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == k {
		c.kernel = nil
	}
}

// A codeExecution is a request to run code.
type codeExecution struct {
	Code     string            `json:"code"`
	Context  string            `json:"context_id"`
	Language string            `json:"language"`
	Env      map[string]string `json:"env_vars"`
}

func (s *Server) execute(w http.ResponseWriter, r *http.Request) {
	var in codeExecution
	c, refused := s.contextFor(w, r, &in)
	leave := func() {}
	if refused == nil {
		leave, refused = contextsOf(r).enter()
	}
	if refused != nil {
		answerText(w, refused)
		return
	}
	defer leave()
	t := targetOf(r.Context())
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(t.live.ctx, cancel)()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	out := &lines{w: w, control: http.NewResponseController(w), cancel: cancel}
	out.send() // so that the client has the answer's status
	alive := out.keepAlive(ctx)
	err := s.run(ctx, t, c, &in, out)
	gone := isGone(err) || ctx.Err() != nil
	cancel()
	alive.Wait()
	select {
	case <-t.sandbox.Done():
		gone = true
	default:
	}
	if gone {
		panic(http.ErrAbortHandler) // an answer that is whole would say that the code came to its end
	}
	if err != nil {
		why := s.refusalOf(r.Context(), err).Message
		out.send(record{"type": "error", "name": "ExecutionError", "value": why, "traceback": why})
	}
	out.send(record{"type": "end_of_execution"})
}

// contextFor reads a request to run code, and returns the context for it.
func (s *Server) contextFor(w http.ResponseWriter, r *http.Request, in *codeExecution) (*codeContext, *Refusal) {
	if refused := readText(w, r, in); refused != nil {
		return nil, refused
	}
	cs, t := contextsOf(r), targetOf(r.Context())
	if in.Context != "" && in.Language != "" {
		return nil, refusal(http.StatusBadRequest, "Only one of context_id or language can be provided")
	}
	if err := s.service.Admit(r.Context(), t.project); err != nil {
		return nil, s.refusalOf(r.Context(), err)
	}
	var c *codeContext
	var refused *Refusal
	if in.Context == "" {
		var language string
		if language, refused = languageOf(in.Language); refused == nil {
			c, refused = cs.add(newCodeContext(language, t.sandbox.Workdir(), true))
		}
	} else if c = cs.find(func(c *codeContext) bool { return c.ID == in.Context }); c == nil {
		refused = refusal(http.StatusNotFound, "Context ID not found")
	}
	if refused != nil {
		return nil, refused
	}
	if _, _, err := environmentOf(c.Language, in.Env); err != nil {
		return nil, refusal(http.StatusBadRequest, "env_vars: "+err.Error())
	}
	return c, nil
}

// run runs code in a context when it is its turn.
func (s *Server) run(ctx context.Context, t *target, c *codeContext, in *codeExecution, out *lines) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	k, err := c.open(ctx, s, t)
	if err != nil {
		c.forgetClosed(k, err)
		return err
	}
	set, restore, _ := environmentOf(c.Language, in.Env) // it was possible before
	if set != "" {
		cell, err := k.Run(ctx, set, nil)
		c.after(cell, 0)
		if err != nil {
			c.forgetClosed(k, err)
			return err
		}
		if !cell.OK() {
			return refusal(http.StatusBadRequest, "the variables of this execution could not be set: "+cmp.Or(cell.Reason, "the language refused them"))
		}
	}
	c.mu.Lock()
	c.process.count++
	count := c.process.count
	c.mu.Unlock()
	out.send(record{"type": "number_of_executions", "execution_count": count})
	stdout, stderr := &outputStream{out: out, kind: "stdout"}, &outputStream{out: out, kind: "stderr"}
	cell, err := k.Run(ctx, in.Code, &llmsandbox.CellOptions{Stdout: stdout, Stderr: stderr})
	stdout.end()
	stderr.end()
	c.after(cell, 1)
	if set != "" && !cell.StateLost && !lost(cell) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTime)
		defer cancel()
		// Where it fails, the code has seen to that: the variables are its own.
		_, _ = k.Run(ctx, restore, nil)
	}
	c.forgetClosed(k, err)
	if lost(cell) {
		wait, cancel := context.WithTimeout(ctx, lostTime)
		defer cancel()
		select {
		case <-t.sandbox.Done():
		case <-wait.Done():
		}
	} else if err != nil && ctx.Err() == nil && !errors.Is(err, llmsandbox.ErrKernelClosed) {
		return err
	}
	out.send(linesOfCell(cell)...)
	return nil
}

// after notes that a cell has found, or left, another process of the kernel, which then has run as many executions.
func (c *codeContext) after(cell *llmsandbox.Cell, executions int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case cell.StateLost:
		c.process = processState{}
	case cell.Restarted:
		c.process = processState{count: executions}
	}
}

func lost(c *llmsandbox.Cell) bool { return c.Status == llmsandbox.StatusLost }

func (c *codeContext) forgetClosed(k *llmsandbox.Kernel, err error) {
	if errors.Is(err, llmsandbox.ErrKernelClosed) || errors.Is(err, llmsandbox.ErrDetached) {
		c.forget(k)
	}
}
