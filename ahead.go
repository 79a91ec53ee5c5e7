package llmsandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
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

// An ahead is an interpreter that was started before its code is known. It becomes the program of
// one run; or it is a zygote, which forks the programs of runs, one at a time; or it is a compiler, and
// becomes the first of two steps.
type ahead struct {
	id         string // of the run that it will be; of a zygote, the one that its main file is named after
	tag        string // of its process
	zygote     uint64 // the agent's number of a zygote; 0: it is none
	imports    bool   // it has imported modules
	plan       language.Plan
	env        []string
	dir        string
	collection *collection // of the run that it will be
	agent      agentproto.Hello
	client     *agentclient.Client
	process    *agentclient.Process // nil where another handle has started it
}

// heldAhead is the one that a sandbox has, if any.
type heldAhead struct {
	mu   sync.Mutex
	held *ahead
	out  bool // a run has it
	// died tells that it was a zygote, which has ended: the next run starts another.
	died   bool
	looked bool // whether another handle has started one
}

// take returns the interpreter, or reports that the caller is to start one. Other callers get none until
// give is called.
func (h *heldAhead) take() (a *ahead, start bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.out || h.held == nil && !h.died {
		return nil, false
	}
	a = h.held
	h.held, h.out = nil, true
	return a, a == nil
}

// give puts back what take has returned, or what is to take its place; nil: there is none.
func (h *heldAhead) give(a *ahead, died bool) (before *ahead) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before = h.held
	h.held, h.out, h.died = a, false, died
	return before
}

// find reports once that another handle's is to be looked for. It goes on as take does.
func (h *heldAhead) find() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := !h.looked && h.held == nil && !h.out
	if first {
		h.looked, h.out = true, true
	}
	return first
}

// Prepare starts the interpreter of the sandbox's language now, or Java's compiler. A Run of one file then gets it, or a
// process that it forks, and behaves as if it had only then been started; other runs, those with a terminal,
// and those with variables that an interpreter reads when it starts, start a new one.
//
// Python's forks every run and kernel, one at a time, also of other handles, and is replaced when it
// dies. It counts as three processes. Those of JavaScript, Ruby and R count as one, and serve the next run without
// input, if nothing else has been executed since. So does Java's compiler, also for a run with input or a terminal, but
// for none in another directory. Prepare fails with ErrUnsupported where there is no way: other languages have none, nor
// has a sandbox without artifacts. The sandbox is then as it was before.
//
// Open does so when there are Options.Imports, which are imported again.
func (s *Sandbox) Prepare(ctx context.Context) error {
	if err := s.link.Alive(); err != nil {
		return err
	}
	if s.language.Ahead == nil || s.artifacts.Off {
		return fmt.Errorf("start %s ahead: %w: it takes the code it is started with", s.language.Title, ErrUnsupported)
	}
	s.dropAhead(ctx)
	a, err := s.startAhead(ctx)
	if err == nil {
		a = s.ahead.give(a, false)
	}
	s.endAhead(ctx, a)
	return err
}

// mostImports bounds the modules that an interpreter imports ahead.
const mostImports = 64

// checkImports checks those of options.
func checkImports(l *language.Language, modules []string, artifacts ArtifactOptions) error {
	switch {
	case len(modules) == 0:
		return nil
	case l.Ahead == nil || l.Ahead.Module == nil:
		return fmt.Errorf("Options.Imports: %w: %s has no way to import modules ahead: leave them empty", ErrUnsupported, l.Title)
	case artifacts.Off:
		return fmt.Errorf("Options.Imports: %w: modules are imported ahead only where artifacts are captured: leave out one or the other", ErrUnsupported)
	case len(modules) > mostImports || slices.ContainsFunc(modules, func(m string) bool { return !l.Ahead.Module(m) }):
		return fmt.Errorf("Options.Imports of %.200q: %w: use at most %d names of modules, such as \"matplotlib.pyplot\"", modules, ErrInvalid, mostImports)
	}
	return nil
}

// startAhead returns it also with an error, once there is something to end.
func (s *Sandbox) startAhead(ctx context.Context) (a *ahead, err error) {
	r, err := s.newRun(s.language, &RunOptions{})
	if err != nil {
		return nil, err
	}
	err = s.tryPrograms(func() error {
		s.endAhead(ctx, a) // of the try before
		a, err = s.tryAhead(ctx, r)
		return err
	})
	return a, err
}

func (s *Sandbox) tryAhead(ctx context.Context, r *run) (*ahead, error) {
	a, err := s.planAhead(ctx, r, s.runs.next(), len(s.imports) > 0)
	if err != nil {
		return nil, err
	}
	forks := s.language.Ahead.Forks
	step := a.plan.Steps[0]
	env := environ.AddMissing(a.env, step.Env)
	a.collection = s.newCollection(r.language, a.id, r.artifacts, true, func(name string) string { return environ.Value(env, name) })
	req := agentproto.StartRequest{
		Argv: s.startedAhead(a.plan, a.collection), Env: environ.Override(env, a.collection.env()), Dir: r.dir, Control: true, Forks: forks && !s.zygote, Enters: s.zygote, KeepChildren: s.zygote, Rest: agentproto.RestUntilFed, Tag: a.tag,
		Files: inlineFiles(a.collection.files()), RemoveAfter: a.plan.Cleanup,
	}
	if forks {
		a.tag = a.zygoteTag()
		req.Rest, req.Tag = agentproto.RestAlways, a.tag
		req.RemoveAfter = []string{a.collection.root}
	} else if s.language.Ahead.Compiler == nil {
		req.Files = append(req.Files, inlineFiles(a.plan.Files)...)
	} else {
		a.tag = "compiler " + a.id // it is not the program
		req.Tag, req.RemoveAfter = a.tag, nil
	}
	if !forks && r.output > 0 {
		req.OutputLimit = uint64(r.output)
	}
	if s.zygote {
		req.Tag = "entering " + a.id // the tag is that of what it forks
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
	if forks {
		a.zygote = a.process.ID()
		// Each program that it forks has these files of its own.
		s.link.Warn("files of an interpreter that was started ahead could not be removed", a.client.Remove(ctx, a.collection.root, agentclient.RemoveOptions{Recursive: true, Missing: true}))
		if stop() {
			a.process.Detach() // it lives as long as the sandbox, and other handles use it
		}
	}
	return a, nil
}

// planAhead is an interpreter that is not started.
func (s *Sandbox) planAhead(ctx context.Context, r *run, id string, imports bool) (*ahead, error) {
	a := &ahead{id: id, tag: runTag{collection: id}.String(), imports: imports, dir: r.dir}
	var err error
	// Ruby opens its file before it waits, and would take an empty one for a program that does nothing.
	if a.plan, err = s.planSource(ctx, r, id, "\n", &RunOptions{}); err != nil {
		return nil, err
	}
	if !s.language.Ahead.Plans(a.plan) {
		return nil, fmt.Errorf("start %s ahead: %w: it takes more than one file and step", s.language.Title, ErrUnsupported)
	}
	a.env, err = s.libraries.Environ(ctx, r.environ)
	return a, err
}

// startedAhead is the command that a plan's first step has while it waits for its code.
func (s *Sandbox) startedAhead(plan language.Plan, c *collection) []string {
	if compiler := s.language.Ahead.Compiler; compiler != nil {
		argv, _ := compiler(plan, c.support())
		return argv
	}
	return plan.Steps[0].Argv
}

// dropAhead ends the interpreter that was started ahead, if there is one.
func (s *Sandbox) dropAhead(ctx context.Context) {
	a, _ := s.ahead.take()
	s.ahead.give(nil, false)
	s.endAhead(ctx, a)
}

// dropUsedAhead ends one that forks no programs: another one is being executed.
func (s *Sandbox) dropUsedAhead(ctx context.Context) {
	if s.language.Ahead != nil && !s.language.Ahead.Forks {
		s.dropAhead(ctx)
	}
}

const zygoteTagBegin = "zygote"

// zygoteTag tells another handle what it has to know of a zygote.
func (a *ahead) zygoteTag() string {
	imports := "plain"
	if a.imports {
		imports = "imports"
	}
	sum := sha256.Sum256([]byte(strings.Join(a.env, "\x00")))
	return strings.Join([]string{zygoteTagBegin, a.id, imports, hex.EncodeToString(sum[:16])}, " ")
}

// findAhead returns the zygote that another handle has started with the environment that this
// one's runs have, if there is one.
func (s *Sandbox) findAhead(ctx context.Context) *ahead {
	client, err := s.link.Client(ctx)
	if err != nil {
		return nil // as what comes next will find
	}
	processes, err := client.Processes(ctx)
	if err != nil {
		return nil
	}
	for _, p := range processes {
		f := strings.Split(p.Tag, " ")
		if f[0] != zygoteTagBegin || len(f) != 4 || !validID(f[1]) || !p.Running {
			continue
		}
		r, err := s.newRun(s.language, &RunOptions{})
		if err != nil {
			return nil
		}
		a, err := s.planAhead(ctx, r, f[1], f[2] == "imports")
		if err != nil {
			continue
		}
		a.env = slices.DeleteFunc(slices.Clone(a.env), s.namesSecret) // which no other handle knows, and no Zygote
		if a.zygoteTag() == p.Tag {
			a.agent, a.zygote = client.Info(), p.ID
			return a
		}
	}
	return nil
}

// processes are those of it that the agent has: also one whose start was lost on the way.
func (a *ahead) processes(ctx context.Context, client *agentclient.Client) []uint64 {
	if a.process != nil {
		return []uint64{a.process.ID()}
	}
	all, _ := client.Processes(ctx)
	var ids []uint64
	for _, p := range all {
		if p.Tag == a.tag {
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
		if strings.HasPrefix(a.tag, zygoteTagBegin) {
			err = client.Signal(ctx, id, uint32(syscall.SIGKILL), false) // what it has forked goes on
		} else {
			err = client.Kill(ctx, id)
		}
		if code := agentlink.Code(err); code != agentproto.CodeLost && code != agentproto.CodeNotFound { // else it has ended
			s.link.Warn("an interpreter that was started ahead could not be ended", err)
		}
	}
	if a.collection != nil {
		s.link.Warn("artifacts could not be removed", client.Remove(ctx, a.collection.root, agentclient.RemoveOptions{Recursive: true, Missing: true}))
	}
}

// takes reports whether it can become the program of a run at all.
func (a *ahead) takes(r *run) bool {
	if r.language != r.sandbox.language || r.artifacts.Off {
		return false
	}
	if r.language.Ahead.Compiler != nil {
		return r.dir == a.dir && r.artifacts == r.sandbox.artifacts
	}
	if r.opts.terminal != nil || r.opts.keepChildren {
		return false
	}
	return a.zygote != 0 || r.opts.stdin == nil && r.artifacts == r.sandbox.artifacts
}

// request is what has the interpreter become the program of a run; false: it cannot. With keep, the
// program keeps descriptors 3 and 4.
func (a *ahead) request(r *run, plan language.Plan, env []string, c *collection, keep int) ([]byte, bool) {
	if !r.language.Ahead.Plans(plan) {
		return nil, false
	}
	step, main := plan.Steps[0], plan.Files[0]
	started := a.plan.Steps[0]
	if !slices.Equal(step.Env, started.Env) || step.Dir != "" || started.Dir != "" {
		return nil, false
	}
	req := kernel.Request{Op: kernel.OpRun, ID: 1, Code: string(main.Data), Env: map[string]string{}}
	if compiler := r.language.Ahead.Compiler; compiler != nil {
		before, _ := compiler(a.plan, c.support())
		argv, args := compiler(plan, c.support())
		lines := append([]string{main.Path, c.marker()}, args...)
		req.Text = strings.Join(lines, "\n")
		if !slices.Equal(argv, before) || strings.Count(req.Text, "\n") != len(lines)-1 {
			return nil, false
		}
	} else {
		n := min(len(started.Argv), len(step.Argv))
		if main.Path != a.plan.Files[0].Path || !slices.Equal(step.Argv[:n], started.Argv) || len(step.Argv) > n && !r.language.Ahead.Args {
			return nil, false
		}
		req.File, req.Dir, req.Args, req.Touch, req.Keep = main.Path, r.dir, step.Argv[n:], c.marker(), keep
	}
	if a.zygote != 0 {
		req.Support = c.support()
		if r.opts.stdin != nil {
			req.Input = 1
		}
	}
	texts := append([]string{req.Code, req.Text, req.Dir}, req.Args...)
	others := false // variables besides those of secrets, which no module finds in a Zygote
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
		others = others || !r.sandbox.namesSecret(kv)
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
	if a.imports && (others || r.dir != a.dir) { // a module may have looked at either
		return nil, false
	}
	// JSON of strings, lists and maps is code of some languages, too; in Ruby's strings # is special.
	line := bytes.ReplaceAll(req.Line(r.language.Ahead.Compiler != nil), []byte("#"), []byte(`\u0023`))
	return line, len(line) <= kernel.MaxLine
}

var (
	// errUnfit: the interpreter cannot become the program of this run.
	errUnfit = errors.New("an interpreter that was started ahead cannot become this program")
	// errNotBegun: it has not become the program, and is of no more use.
	errNotBegun = errors.New("an interpreter that was started ahead has not begun")
	// errZygoteDied: there is no zygote any more.
	errZygoteDied = errors.New("the interpreter that forks programs has ended")
)

// takeAhead returns the interpreter that was started ahead, of which give must be told; nil: there
// is none. timeout bounds the start of another one; 0: nothing but ctx does.
func (s *Sandbox) takeAhead(ctx context.Context, timeout time.Duration) *ahead {
	a, start := s.ahead.take()
	switch {
	case a != nil:
		return a
	case start:
		var err error
		starting := ctx
		if timeout > 0 {
			var cancel func()
			starting, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		if a, err = s.startAhead(starting); err == nil {
			return a
		}
		s.endAhead(ctx, a) // what is wrong, the run itself will find
	case s.language.Ahead.Forks && s.ahead.find():
		if a = s.findAhead(ctx); a != nil {
			return a
		}
	default:
		return nil
	}
	s.ahead.give(nil, false)
	return nil
}

// executeAhead runs code in the interpreter that was started ahead, if there is one that
// fits. Otherwise ran is false, and the code has not been executed.
func (r *run) executeAhead(ctx context.Context, code string, opts *RunOptions) (ran bool, err error) {
	s := r.sandbox
	if s.language.Ahead == nil || opts.FreshLayout && s.language.Ahead.Forks { // one that does not fork has one program
		return false, nil
	}
	r.begin()
	a := s.takeAhead(ctx, r.timeout)
	if a == nil {
		return false, nil
	}
	err = r.become(ctx, a, code, opts)
	return s.giveAhead(ctx, a, err), err
}

// giveAhead says what became of an interpreter that was to become a program. It reports whether it did.
func (s *Sandbox) giveAhead(ctx context.Context, a *ahead, err error) bool {
	unfit, unbegun, died := errors.Is(err, errUnfit), errors.Is(err, errNotBegun), errors.Is(err, errZygoteDied)
	switch {
	case died:
		s.ahead.give(nil, a.process != nil || len(s.imports) > 0) // otherwise this handle does not know the imports
	case a.zygote != 0 && !unbegun:
		s.ahead.give(a, false)
	default:
		s.ahead.give(nil, false)
		if unfit || unbegun {
			s.endAhead(ctx, a)
		}
	}
	return !unfit && !unbegun && !died
}

// become runs code in an interpreter that was started ahead. When it fails with one of the errors
// above, the code has not been executed.
func (r *run) become(ctx context.Context, a *ahead, code string, opts *RunOptions) error {
	s := r.sandbox
	if !a.takes(r) {
		return errUnfit
	}
	plan, err := s.planSource(ctx, r, a.id, code, opts)
	if err != nil {
		return err
	}
	env, err := s.libraries.Environ(ctx, r.environ)
	if err != nil {
		return err
	}
	c := a.collection
	if a.zygote != 0 {
		c = s.newCollection(r.language, s.runs.next(), r.artifacts, false, func(name string) string { return environ.Value(env, name) })
	}
	request, fits := a.request(r, plan, env, c, 0)
	if !fits {
		return errUnfit
	}
	r.network = s.recordNetwork(ctx)
	r.ooms = watchOOM(ctx, s.machine)
	wait, left := ctx, time.Duration(0)
	if r.timeout > 0 {
		left = max(r.timeout-time.Since(r.started), time.Millisecond)
		var stop func()
		wait, stop = s.link.Watch(ctx, left)
		defer stop()
	}
	switch {
	case a.zygote != 0:
		a, err = s.fork(wait, a, c, agentproto.StartRequest{
			Tag: runTag{collection: c.id}.String(), Files: inlineFiles(c.files()), RemoveAfter: plan.Cleanup, OutputLimit: uint64(r.output),
			TimeoutMillis: uint64(left.Milliseconds()), Feed: request, Stdin: r.opts.stdin != nil,
		})
		if err != nil {
			return err
		}
	default:
		if r.timeout > 0 && a.client.KillAfter(wait, a.process.ID(), left) != nil {
			return errNotBegun // it has ended meanwhile
		}
		if _, err := a.process.Requests().Write(request); err != nil {
			s.endAhead(ctx, a)
			return errNotBegun
		}
	}
	compiles := s.language.Ahead.Compiler != nil
	control := &begun{Writer: bounded.Writer{Most: maxBegun}, has: make(chan struct{})}
	if r.onStart != nil && !compiles {
		control.then = func() { r.onStart(a.process) }
	}
	ended := make(chan struct{})
	defer close(ended)
	var stdin io.Reader
	if r.opts.stdin != nil && !compiles {
		stdin = &held{r.opts.stdin, control.has, ended}
	}
	stderr, flush := r.stderr()
	std := agentlink.Streams{Stdin: stdin, Stdout: r.out, Stderr: stderr, Control: control}
	flushOut := func() {}
	if compiles {
		std.Stdout, flushOut = r.stderr()
	}
	exit, err := s.link.Follow(wait, a.agent, a.process, std)
	flush()
	flushOut()
	if err == nil && exit.Reason == agentproto.NotKilled {
		// An event that is not there is no begun one.
		switch {
		case control.seen():
		case r.out.written()+r.err.written() == 0:
			s.endAhead(ctx, a)
			return errNotBegun
		default:
			err = fmt.Errorf("the interpreter that was started ahead has ended before it took its code: run it again")
		}
	}
	r.collection = a.collection
	failed := r.ended(exit, compiles)
	switch {
	case !compiles:
		return err
	case err != nil || failed:
		r.cleanup(ctx, plan.Cleanup)
		return err
	}
	return r.steps(ctx, plan, env, 1)
}

// fork has a zygote fork an interpreter that waits for its code, with what the request says of it.
func (s *Sandbox) fork(ctx context.Context, zygote *ahead, c *collection, req agentproto.StartRequest) (*ahead, error) {
	client, err := s.link.Client(ctx)
	if err != nil {
		return nil, err
	}
	if client.Info().Instance != zygote.agent.Instance {
		return nil, errZygoteDied
	}
	a := &ahead{id: c.id, tag: req.Tag, collection: c, agent: zygote.agent, client: client}
	req.From, req.Control = zygote.zygote, true
	if a.process, err = client.Start(ctx, req); err == nil {
		return a, nil
	}
	switch agentlink.Code(err) {
	case agentproto.CodeBusy:
		err = errUnfit
	case agentproto.CodeNotFound, agentproto.CodeLost:
		err = errZygoteDied
	default:
		err = s.link.Explain(ctx, err)
	}
	s.endAhead(ctx, a) // what was started or written without an answer
	return nil, err
}

// begun keeps what an interpreter says, and knows once it has become the program.
type begun struct {
	bounded.Writer
	has  chan struct{} // closed then
	then func()        // called then; may be nil
}

func (b *begun) seen() bool {
	select {
	case <-b.has:
		return true
	default:
		return false
	}
}

func (b *begun) Write(p []byte) (int, error) {
	n, err := b.Writer.Write(p)
	if b.seen() {
		return n, err
	}
	if e, _ := kernel.NewReader(bytes.NewReader(b.Kept)).Next(); e.Event == kernel.EventBegun {
		close(b.has)
		if b.then != nil {
			b.then()
		}
	}
	return n, err
}

// A held reader is the input of a program, of which nothing is read before the program has begun: it
// may have to go to another one.
type held struct {
	io.Reader
	begun, ended <-chan struct{}
}

func (h *held) Read(p []byte) (int, error) {
	select {
	case <-h.begun:
	case <-h.ended:
	}
	select {
	case <-h.ended:
		return 0, io.EOF
	default:
		return h.Reader.Read(p)
	}
}

// maxBegun bounds what is kept of what the interpreter writes to descriptor 4.
const maxBegun = 256

// forkKernel has a zygote fork a kernel's driver, which a request describes that would start it in a new
// interpreter. It fails with one of the errors above when the driver has not begun.
func (s *Sandbox) forkKernel(ctx context.Context, zygote *ahead, r *run, c *collection, driver agentproto.StartRequest) (*agentclient.Process, error) {
	argv := zygote.plan.Steps[0].Argv
	n := len(argv) - 1 // its file
	main := zygote.plan.Files[0].Path
	if len(driver.Argv) <= n || !slices.Equal(driver.Argv[:n], argv[:n]) || r.dir != driver.Dir {
		return nil, errUnfit
	}
	env, err := s.libraries.Environ(ctx, r.environ)
	if err != nil {
		return nil, err
	}
	request, fits := zygote.request(r, language.Plan{
		Files: []language.File{{Path: main, Data: s.language.Ahead.Driver(driver.Argv[n])}},
		Steps: []language.Step{{Argv: append(slices.Clone(argv), driver.Argv[n+1:]...), Env: zygote.plan.Steps[0].Env}},
	}, env, c, 1)
	if !fits {
		return nil, errUnfit
	}
	a, err := s.fork(ctx, zygote, c, agentproto.StartRequest{
		Tag: driver.Tag, Files: driver.Files, RemoveAfter: append(slices.Clone(driver.RemoveAfter), main), Rest: driver.Rest,
	})
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, a.process.Detach)
	defer stop()
	if _, err := a.process.Requests().Write(request); err == nil {
		// An event that is not there is no begun one.
		if e, _ := kernel.NewReader(oneByte{a.process.Control()}).Next(); e.Event == kernel.EventBegun {
			a.process.Acknowledge() // another handle that takes it over begins after that
			return a.process, nil
		}
	}
	s.endAhead(ctx, a)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, errNotBegun
}

// oneByte is a reader of which nothing is read ahead.
type oneByte struct{ io.Reader }

func (r oneByte) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 1)]) }
