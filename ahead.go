package llmsandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/bounded"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// An ahead is an interpreter that was started before its code is known. It takes one request of
// the protocol of kernels' drivers, and becomes the program of that.
type ahead struct {
	id         string // of the run that it will be
	imports    []string
	plan       language.Plan
	env        []string
	dir        string
	collection *collection
	agent      agentproto.Hello
	client     *agentclient.Client
	process    *agentclient.Process
}

// heldAhead is the one that a sandbox has, if any.
type heldAhead struct {
	mu   sync.Mutex
	held *ahead
}

func (h *heldAhead) take() *ahead {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.held
	h.held = nil
	return a
}

func (h *heldAhead) put(a *ahead) (before *ahead) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, h.held = h.held, a
	return before
}

// Prepare starts the interpreter of the sandbox's language now, for the next Run: it gets
// its code once it is ready, and runs it as if it had only then been started. That holds
// for a Run of one file without input, when nothing else has been executed since; otherwise the
// interpreter is dropped. So it is where a variable of the run has another value that the
// interpreter reads when it starts. Until then it counts as one process
// with its memory. Prepare fails with ErrUnsupported where there is no way (Python, JavaScript, Ruby
// and R have one, unless artifacts are off); the sandbox is then as it was before.
//
// Python imports modules, such as "numpy" and "matplotlib.pyplot", before it gets its
// code; when it cannot, Prepare fails with ErrInvalid. It then does not serve a run with variables
// or a directory of its own, nor one that would find a file of its own in place of a module that has
// been imported. What modules print while they are imported is output of the run.
func (s *Sandbox) Prepare(ctx context.Context, modules ...string) error {
	if err := s.link.Alive(); err != nil {
		return err
	}
	if s.language.Ahead == nil || s.artifacts.Off {
		return fmt.Errorf("start %s ahead: %w: it takes the code it is started with", s.language.Title, ErrUnsupported)
	}
	if len(modules) > 0 && s.language.Ahead.Module == nil {
		return fmt.Errorf("import %.200q ahead: %w: %s has no way: name no modules", modules, ErrUnsupported, s.language.Title)
	}
	if i := slices.IndexFunc(modules, func(m string) bool { return !s.language.Ahead.Module(m) }); i >= 0 || len(modules) > mostImports {
		return fmt.Errorf("import %.200q ahead: %w: use at most %d names of modules, such as \"matplotlib.pyplot\"", modules, ErrInvalid, mostImports)
	}
	r, err := s.newRun(s.language, &RunOptions{})
	if err != nil {
		return err
	}
	s.dropAhead(ctx)
	return s.tryPrograms(func() error {
		a, err := s.startAhead(ctx, r, modules)
		if err == nil {
			a = s.ahead.put(a)
		}
		s.endAhead(ctx, a)
		return err
	})
}

// mostImports bounds the modules that an interpreter imports ahead.
const mostImports = 64

// startAhead returns it also with an error, once there is something to end.
func (s *Sandbox) startAhead(ctx context.Context, r *run, imports []string) (*ahead, error) {
	a := &ahead{id: s.runs.next(), imports: imports, dir: r.dir}
	var err error
	// Ruby opens its file before it waits, and would take an empty one for a program that does nothing.
	if a.plan, err = s.planSource(ctx, r, a.id, "\n", &RunOptions{}); err != nil {
		return nil, err
	}
	if len(a.plan.Steps) != 1 || len(a.plan.Files) != 1 {
		return nil, fmt.Errorf("start %s ahead: %w: it takes more than one file and step", s.language.Title, ErrUnsupported)
	}
	if a.env, err = s.libraries.Environ(ctx, r.environ); err != nil {
		return nil, err
	}
	step, main := a.plan.Steps[0], a.plan.Files[0]
	env := environ.AddMissing(a.env, step.Env)
	a.collection = s.newCollection(r.language, a.id, r.artifacts, a, func(name string) string { return environ.Value(env, name) })
	req := agentproto.StartRequest{
		Argv: step.Argv, Env: environ.Override(env, a.collection.env()), Dir: r.dir, Control: true, Rest: agentproto.RestUntilFed, Tag: a.tag(),
		Files: inlineFiles(append([]language.File{main}, a.collection.files()...)), RemoveAfter: a.plan.Cleanup,
	}
	if r.output > 0 {
		req.OutputLimit = uint64(r.output)
	}
	if a.client, err = s.link.Client(ctx); err != nil {
		return nil, err
	}
	a.agent = a.client.Info()
	if a.process, err = a.client.Start(ctx, req); err != nil {
		if agentlink.Code(err) == agentproto.CodeNotFound {
			return nil, &missingProgramError{program: req.Argv[0], cause: err}
		}
		return a, s.link.Explain(ctx, err)
	}
	stop := context.AfterFunc(ctx, a.process.Detach)
	defer stop()
	if e, err := kernel.NewReader(a.process.Control()).Next(); e.Event != kernel.EventReady {
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case e.Event == kernel.EventReply:
			return a, fmt.Errorf("import ahead: %.500q: %w: install what is missing, or name other modules", e.Refusal, ErrInvalid)
		case err == nil || errors.Is(err, io.EOF) || errors.Is(err, kernel.ErrProtocol):
			err = fmt.Errorf("it ended or said something else: %w", ErrUnsupported)
		default:
			err = s.link.Explain(ctx, err)
		}
		return a, fmt.Errorf("start %s ahead: it did not become ready: %w", s.language.Title, err)
	}
	return a, nil
}

// dropAhead ends the interpreter that was started ahead, if there is one.
func (s *Sandbox) dropAhead(ctx context.Context) {
	s.endAhead(ctx, s.ahead.take())
}

// tag is the one of the run that it will be.
func (a *ahead) tag() string { return runTag{collection: a.id}.String() }

// processes are those of it that the agent has: also one whose start was lost on the way.
func (a *ahead) processes(ctx context.Context, client *agentclient.Client) []uint64 {
	if a.process != nil {
		return []uint64{a.process.ID()}
	}
	all, _ := client.Processes(ctx)
	var ids []uint64
	for _, p := range all {
		if p.Tag == a.tag() {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// endAhead needs no answer: what is left of it goes with the sandbox.
func (s *Sandbox) endAhead(ctx context.Context, a *ahead) {
	if a == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), agentlink.KillGrace)
	defer cancel()
	if a.process != nil {
		a.process.Detach()
	}
	// Not by the stream that started it, which may be lost.
	client, err := s.link.Client(ctx)
	if err != nil || client.Info().Instance != a.agent.Instance {
		return
	}
	for _, id := range a.processes(ctx, client) {
		s.link.Warn("an interpreter that was started ahead could not be ended", client.Kill(ctx, id))
	}
	s.link.Warn("artifacts could not be removed", client.Remove(ctx, a.collection.root, agentclient.RemoveOptions{Recursive: true, Missing: true}))
}

// request is what has the interpreter become the program of a run; false: it cannot.
func (a *ahead) request(r *run, plan language.Plan, env []string) ([]byte, bool) {
	if r.opts.stdin != nil || r.opts.terminal != nil || r.opts.keepChildren || r.artifacts != r.sandbox.artifacts || len(plan.Steps) != 1 || len(plan.Files) != 1 {
		return nil, false
	}
	step, main := plan.Steps[0], plan.Files[0]
	started := a.plan.Steps[0]
	n := min(len(started.Argv), len(step.Argv))
	if len(step.Argv) > n && !r.language.Ahead.Args {
		return nil, false
	}
	if main.Path != a.plan.Files[0].Path || !slices.Equal(step.Argv[:n], started.Argv) || !slices.Equal(step.Env, started.Env) || step.Dir != "" || started.Dir != "" {
		return nil, false
	}
	req := kernel.Request{
		Op: kernel.OpRun, ID: 1, Code: string(main.Data),
		File: main.Path, Dir: r.dir, Args: step.Argv[n:], Env: map[string]string{}, Touch: a.collection.marker(),
	}
	texts := append([]string{req.Code, req.Dir}, req.Args...)
	before := map[string]bool{}
	for _, kv := range a.env {
		before[kv] = true
	}
	for _, kv := range env {
		if before[kv] {
			delete(before, kv)
			continue
		}
		name, value, _ := strings.Cut(kv, "=")
		if settable := r.language.Ahead.Settable; settable == nil || !settable(name) {
			return nil, false
		}
		req.Env[name] = value
		texts = append(texts, kv)
	}
	for kv := range before { // else a variable would have to go
		if name, _, _ := strings.Cut(kv, "="); req.Env[name] == "" {
			return nil, false
		}
	}
	if slices.ContainsFunc(texts, func(text string) bool { return !utf8.ValidString(text) }) || strings.Contains(strings.Join(req.Args, ""), "\x00") {
		return nil, false
	}
	if len(a.imports) > 0 && (len(req.Env) > 0 || r.dir != a.dir) { // a module may have looked at either
		return nil, false
	}
	// JSON of strings, lists and maps is code of some languages, too; in Ruby's strings # is special.
	line := bytes.ReplaceAll(req.Line(false), []byte("#"), []byte(`\u0023`))
	return line, len(line) <= kernel.MaxLine
}

// executeAhead runs code in the interpreter that was started ahead, if there is one that
// fits. Otherwise ran is false, and the code has not been executed.
func (r *run) executeAhead(ctx context.Context, code string, opts *RunOptions) (ran bool, err error) {
	s := r.sandbox
	a := s.ahead.take()
	if a == nil {
		return false, nil
	}
	plan, err := s.planSource(ctx, r, a.id, code, opts)
	if err != nil {
		s.endAhead(ctx, a)
		return true, err
	}
	env, err := s.libraries.Environ(ctx, r.environ)
	if err != nil {
		s.endAhead(ctx, a)
		return true, err
	}
	request, fits := a.request(r, plan, env)
	if !fits {
		s.endAhead(ctx, a)
		return false, nil
	}
	r.started = time.Now()
	r.network = s.recordNetwork(ctx)
	r.ooms = watchOOM(ctx, s.machine)
	wait := ctx
	if r.timeout > 0 {
		var stop func()
		wait, stop = s.link.Watch(ctx, r.timeout)
		defer stop()
		if err := a.client.KillAfter(wait, a.process.ID(), r.timeout); err != nil {
			s.endAhead(ctx, a)
			return false, nil // it has ended meanwhile
		}
	}
	if _, err := a.process.Requests().Write(request); err != nil {
		s.endAhead(ctx, a)
		return false, nil
	}
	control := &bounded.Writer{Most: maxBegun}
	stderr, flush := r.stderr()
	exit, err := s.link.Follow(wait, a.agent, a.process, agentlink.Streams{Stdout: r.out, Stderr: stderr, Control: control})
	flush()
	if err == nil && exit.Reason == agentproto.NotKilled {
		// An event that is not there is no begun one.
		switch e, _ := kernel.NewReader(bytes.NewReader(control.Kept)).Next(); {
		case e.Event == kernel.EventBegun:
		case r.out.written()+r.err.written() == 0:
			s.endAhead(ctx, a)
			return false, nil
		default:
			err = fmt.Errorf("the interpreter that was started ahead has ended before it took its code: run it again")
		}
	}
	r.exit, r.collection = exit, a.collection
	r.cpu, r.peak = time.Duration(exit.CPUMicros)*time.Microsecond, int64(exit.PeakRSS)
	return true, err
}

// maxBegun bounds what is kept of what the interpreter writes to descriptor 4.
const maxBegun = 256
