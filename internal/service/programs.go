package service

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/replicas"
)

// errNoProgram is of a program that there is not.
var errNoProgram = errclass.Of(llmsandbox.ErrNotFound, errors.New("there is no such program: it was not started here, or its result is no longer kept"))

// ErrInputEnded is what Write returns for a program that takes no more input.
var ErrInputEnded = errclass.Of(io.ErrClosedPipe, errors.New("the program takes no more input: it has ended, its input was closed, or was not to be open, or the server has been started again"))

// A Program is one that goes on without the request that started it. It is safe for concurrent use.
type Program struct {
	ID      uint64
	Output  *Output
	process *llmsandbox.Process // nil: it has ended
	input   *Input              // nil: it has none that is open
	facts   programFacts
	before  [2]stream                         // what was written before it was taken up
	rename  func(io.Writer) *language.Renamer // of stderr of code that was taken up; nil: as it is
	done    chan struct{}                     // closed once result or err is set
	unkept  []byte                            // what could not be kept of its end; guarded by the handle's programsMu
	result  *llmsandbox.Result
	err     error
}

// programFacts are those of a program that nobody but who starts it knows.
type programFacts struct {
	Language string `json:"language,omitempty"` // of code
	Name     string `json:"name,omitempty"`
	By       string `json:"by,omitempty"`
}

// An ended program is what is kept of one. Result has neither Stdout nor Stderr, of which JSON would not keep all bytes.
type ended struct {
	Result         *llmsandbox.Result `json:"result"`
	Stdout, Stderr []byte
	Starts         Offsets
}

// Done is closed when Result returns at once.
func (p *Program) Done() <-chan struct{} { return p.done }

// Result is what became of the program; it waits for that. It fails with llmsandbox.ErrDetached where the program goes on without this service.
func (p *Program) Result(ctx context.Context) (*llmsandbox.Result, error) {
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Write gives the program input, and returns once that is on its way to it. It fails with ErrInputEnded. last says that there is no more.
func (p *Program) Write(ctx context.Context, b []byte, last bool) error {
	if p.input == nil {
		return ErrInputEnded
	}
	return p.input.Write(ctx, p.done, b, last)
}

// Signal sends the program a signal by its name; Kill kills it with all that it has started. That it has ended is no error.
func (p *Program) Signal(ctx context.Context, name string) error {
	if p.process == nil {
		return nil
	}
	return p.process.Signal(ctx, name)
}

// Kill kills the program with all that it has started. That it has ended is no error.
func (p *Program) Kill(ctx context.Context) error {
	if p.process == nil {
		return nil
	}
	return p.process.Kill(ctx)
}

// An Input is what requests write to a program. It is safe for concurrent use by those who write.
type Input struct {
	pieces chan []byte
	rest   []byte
	closed chan struct{}
	once   sync.Once
}

// NewInput makes an input, which who starts the program closes when that has ended.
func NewInput() *Input { return &Input{pieces: make(chan []byte), closed: make(chan struct{})} }

// Read implements io.Reader, for the one that reads.
func (in *Input) Read(b []byte) (int, error) {
	for len(in.rest) == 0 {
		select {
		case in.rest = <-in.pieces:
		case <-in.closed:
			return 0, io.EOF
		}
	}
	n := copy(b, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

// Write gives the program, which has ended once done is closed, input, and returns once that is on its way. It fails with ErrInputEnded. last says that
// there is no more.
func (in *Input) Write(ctx context.Context, done <-chan struct{}, b []byte, last bool) error {
	select {
	case <-in.closed:
		return ErrInputEnded
	case <-done:
		return ErrInputEnded
	default:
	}
	if len(b) > 0 {
		select {
		case in.pieces <- b:
		case <-in.closed:
			return ErrInputEnded
		case <-done:
			return ErrInputEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if last {
		in.Close()
	}
	return nil
}

// Close says that there is no more. More than one call does nothing.
func (in *Input) Close() { in.once.Do(func() { close(in.closed) }) }

// A Start is how a program is started.
type Start struct {
	// IsCode says that it is code of that language, empty means the sandbox's, whose main file its caller knows by that name.
	IsCode         bool
	Language, Name string
	// By is what Config.Ended is called with.
	By string
	// Stdin is the program's input; where it is nil and KeepInput is set, Program.Write adds to it.
	Stdin     io.Reader
	KeepInput bool
	// Do starts it with that input and output.
	Do func(ctx context.Context, sb *llmsandbox.Sandbox, stdin io.Reader, stdout, stderr io.Writer) (*llmsandbox.Process, error)
}

// StartProgram starts a program in a sandbox of a project. It takes one of the places for programs until the program ends. Where there was nothing to
// run, because code was refused or does not compile, it returns a result instead.
func (s *Service) StartProgram(ctx context.Context, project, id string, start Start) (*Program, *llmsandbox.Result, error) {
	leave, err := s.Enter(ctx, project)
	if err != nil {
		return nil, nil, err
	}
	p, res, err := s.startProgram(ctx, project, id, start, leave)
	if p == nil {
		leave()
	}
	return p, res, err
}

func (s *Service) startProgram(ctx context.Context, project, id string, start Start, leave func()) (*Program, *llmsandbox.Result, error) {
	h, err := s.get(ctx, project, id)
	if err != nil {
		return nil, nil, err
	}
	p := &Program{Output: newOutput(), facts: programFacts{By: start.By}, done: make(chan struct{})}
	if start.IsCode {
		if l, err := all.Get(cmp.Or(start.Language, h.sandbox.Language())); err == nil { // else starting it fails
			p.facts.Language, p.facts.Name = l.Name, start.Name
		}
	}
	stdin := start.Stdin
	if start.KeepInput {
		p.input = NewInput()
		stdin = p.input
	}
	if p.process, err = start.Do(ctx, h.sandbox, stdin, outputWriter{p.Output, 0}, outputWriter{p.Output, 1}); err != nil {
		p.closeInput()
		return nil, nil, err
	}
	if p.ID = p.process.ID(); p.ID == 0 {
		p.closeInput()
		res, err := p.process.Wait(ctx)
		return nil, res, err
	}
	h.programsMu.Lock()
	defer h.programsMu.Unlock()
	facts, err := json.Marshal(p.facts)
	if err == nil {
		err = s.records.PutRecord(ctx, project, id, programRecord(p.ID), true, facts)
	}
	if err != nil {
		p.closeInput()
		return nil, nil, errors.Join(errclass.Of(ErrNotKept, err), p.process.Kill(context.WithoutCancel(ctx)))
	}
	if err := s.followTo(h, p, leave); err != nil {
		return nil, nil, err
	}
	return p, nil, nil
}

// followTo follows a program to its end. The caller holds programsMu.
func (s *Service) followTo(h *handle, p *Program, leave func()) error {
	if h.programsGone { // then who is next takes it up, if there is anybody
		p.process.Detach()
		p.closeInput()
		return ErrClosed
	}
	if h.programs == nil {
		h.programs = map[uint64]*Program{}
	}
	h.programs[p.ID] = p
	h.following.Go(func() {
		defer leave()
		s.follow(h, p)
	})
	return nil
}

func (p *Program) closeInput() {
	if p.input != nil {
		p.input.Close()
	}
}

const programPrefix = "process/"

// programRecord is the name of a program's record.
func programRecord(id uint64) string { return programPrefix + strconv.FormatUint(id, 10) }

// follow keeps what becomes of a program.
func (s *Service) follow(h *handle, p *Program) {
	res, err := p.process.Wait(context.Background())
	p.closeInput()
	h.programsMu.Lock()
	defer h.programsMu.Unlock()
	is := h.programs[p.ID] == p                 // else the sandbox was reset, and another has its number
	if errors.Is(err, llmsandbox.ErrDetached) { // it goes on, and who is next takes it up
		p.err = err
		close(p.done)
		if is {
			delete(h.programs, p.ID)
		}
		return
	}
	if err != nil && !errors.Is(err, llmsandbox.ErrOutput) && res.Status != llmsandbox.StatusOutOfMemory {
		if h.lives() {
			s.cfg.Log.Warn("a program was lost", "sandbox", h.sandbox.ID(), "process", p.ID, "error", err)
		}
		res.Status, res.Reason = llmsandbox.StatusLost, lostReason
	}
	if kept := s.finish(h, p, res, is); is && kept {
		delete(h.programs, p.ID)
	}
}

// finish makes a program's end known, and reports whether it is kept, if it is to be. What is answered to requests is kept first, whatever becomes of the
// service. The caller holds programsMu.
func (s *Service) finish(h *handle, p *Program, res *llmsandbox.Result, keep bool) (kept bool) {
	s.Ran(h.project, h.sandbox.ID())
	e := p.ended(res)
	if keep && h.lives() { // else what is kept of it goes with the sandbox
		data, err := json.Marshal(e)
		if err == nil {
			err = s.records.PutRecord(context.Background(), h.project, h.sandbox.ID(), programRecord(p.ID), false, data)
		}
		if kept = err == nil; !kept {
			p.unkept = data
			s.cfg.Log.Error("the result of a program could not be kept, which is tried again when somebody asks for it and when the server ends", "sandbox", h.sandbox.ID(), "process", p.ID, "error", err)
		}
	}
	if s.cfg.Ended != nil {
		s.cfg.Ended(p.facts.By, e.whole())
	}
	p.settle(e)
	return kept
}

// keepAgain keeps the end of a program that could not be kept before, if there is one. The caller holds programsMu.
func (s *Service) keepAgain(ctx context.Context, h *handle, p *Program) error {
	if p.unkept == nil || h.programs[p.ID] != p || !h.lives() {
		return nil
	}
	err := s.records.PutRecord(ctx, h.project, h.sandbox.ID(), programRecord(p.ID), false, p.unkept)
	if err == nil {
		delete(h.programs, p.ID)
	}
	return err
}

const lostReason = "what became of the program is not known: its end was not observed"

// Bounds of what is kept of a result, in bytes.
const (
	mostOutput    = 16 << 20 // of both streams together
	mostArtifacts = 8 << 20
)

// ended is what is kept of the program. It may change the result.
func (p *Program) ended(res *llmsandbox.Result) *ended {
	e := &ended{Result: res, Starts: Offsets{p.before[0].start, p.before[1].start}}
	if res.Language == "" {
		res.Language = p.facts.Language
	}
	for i, of := range []struct {
		text      string
		all       *[]byte
		truncated *bool
	}{{res.Stdout, &e.Stdout, &res.StdoutTruncated}, {res.Stderr, &e.Stderr, &res.StderrTruncated}} {
		*of.all = append(p.before[i].data, of.text...)
		if i == 1 && p.rename != nil {
			*of.all = renamed(*of.all, p.rename)
		}
		if len(p.before[i].data) > 0 && p.before[i].start == 0 && res.Status != llmsandbox.StatusOutputLimit {
			*of.truncated = false // nothing is missing where it was taken up
		}
	}
	if len(e.Stdout)+len(e.Stderr) > mostOutput {
		for _, of := range []struct {
			all       *[]byte
			truncated *bool
		}{{&e.Stdout, &res.StdoutTruncated}, {&e.Stderr, &res.StderrTruncated}} {
			if len(*of.all) > mostOutput/2 {
				*of.all, *of.truncated = (*of.all)[:mostOutput/2], true
			}
		}
	}
	size := 0
	for i, a := range res.Artifacts {
		size += len(a.Data)
		for _, form := range a.Also {
			size += len(form.Data)
		}
		if size > mostArtifacts {
			dropped := len(res.Artifacts) - i
			res.Artifacts = res.Artifacts[:i:i]
			res.ArtifactsDropped = append(res.ArtifactsDropped, fmt.Sprintf("%d artifacts were left out: of a program that goes on by itself, %d MiB of them are kept", dropped, mostArtifacts>>20))
			break
		}
	}
	res.Stdout, res.Stderr = "", ""
	return e
}

// whole is the result with its output.
func (e *ended) whole() *llmsandbox.Result {
	res := *e.Result
	res.Stdout, res.Stderr = string(e.Stdout), string(e.Stderr)
	return &res
}

// settle makes the end known to requests.
func (p *Program) settle(e *ended) {
	p.result = e.whole()
	p.Output.end(e.Starts, e.Stdout, e.Stderr)
	close(p.done)
}

// Program returns a program that was started in a sandbox of a project, also by a service before this one. It fails with llmsandbox.ErrNotFound.
func (s *Service) Program(ctx context.Context, project, id string, program uint64) (*Program, error) {
	h, err := s.get(ctx, project, id)
	if err != nil {
		return nil, err
	}
	h.programsMu.Lock()
	defer h.programsMu.Unlock()
	if p := h.programs[program]; p != nil {
		_ = s.keepAgain(ctx, h, p) // it is known here, and that it could not be kept was logged
		return p, nil
	}
	data, open, err := s.records.Record(ctx, project, id, programRecord(program))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNoProgram
	case err != nil:
		return nil, err
	}
	p := &Program{ID: program, Output: newOutput(), done: make(chan struct{})}
	if !open {
		e := &ended{}
		err := json.Unmarshal(data, e)
		if err == nil && e.Result == nil {
			err = errors.New("it has no result")
		}
		if err != nil {
			return nil, fmt.Errorf("read what is kept of program %d of sandbox %s: %w", program, id, err)
		}
		p.settle(e)
		return p, nil
	}
	if err := json.Unmarshal(data, &p.facts); err != nil {
		return nil, fmt.Errorf("read what is kept of program %d of sandbox %s: %w", program, id, err)
	}
	return p, s.takeUp(ctx, h, p)
}

// takeUp follows a program that a service before this one has followed, which was killed, from the byte on at which it was. The caller holds programsMu.
func (s *Service) takeUp(ctx context.Context, h *handle, p *Program) error {
	err := p.attach(ctx, h.sandbox)
	if errors.Is(err, fs.ErrNotExist) { // its end was delivered, and not kept
		s.finish(h, p, &llmsandbox.Result{Status: llmsandbox.StatusLost, ExitCode: -1, SandboxID: h.sandbox.ID(), Backend: h.sandbox.Backend(), Reason: lostReason}, true)
		return nil
	}
	if err != nil {
		return err
	}
	return s.followTo(h, p, func() {})
}

func (p *Program) attach(ctx context.Context, sb *llmsandbox.Sandbox) error {
	list, err := sb.Processes(ctx)
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.ID != p.ID {
			continue
		}
		from := Offsets{i.StdoutStart, i.StderrStart}
		if p.before, err = delivered(ctx, sb, p.ID, from); err != nil {
			return err
		}
		p.rename = p.facts.renamer(i.Argv)
		stderr := io.Writer(outputWriter{p.Output, 1})
		p.Output.begin([2]stream{p.before[0], {start: p.before[1].start}})
		if p.rename != nil {
			stderr = p.rename(stderr)
		}
		if _, err := stderr.Write(p.before[1].data); err != nil {
			return err
		}
		// Its input ends here: what was on its way when the service before was killed is not known.
		p.process, err = sb.AttachProcess(ctx, p.ID, &llmsandbox.AttachOutput{
			Stdin: strings.NewReader(""), Stdout: outputWriter{p.Output, 0}, Stderr: stderr, StdoutOffset: from[0], StderrOffset: from[1],
		})
		return err
	}
	return fs.ErrNotExist
}

// ownFile is the name that the library gives the main file of code.
var ownFile = regexp.MustCompile(`(?:^|/)\.run-([0-9a-z]+)[^/]*`)

// renamer does to stderr of code what the library does where it has started it itself: it puts in the names that the caller knows. It returns nil where
// there is nothing to be done.
func (f programFacts) renamer(argv []string) func(io.Writer) *language.Renamer {
	for _, arg := range argv {
		if found := ownFile.FindStringSubmatch(arg); found != nil && f.Language != "" {
			return func(w io.Writer) *language.Renamer {
				return language.NewRenamer(w, language.Source{Name: f.Name, RunID: found[1]}, language.Plan{Files: []language.File{{Path: arg}}})
			}
		}
	}
	return nil
}

func renamed(text []byte, rename func(io.Writer) *language.Renamer) []byte {
	var b bytes.Buffer
	names := rename(&b)
	// A buffer takes everything.
	_, _ = names.Write(text)
	_ = names.Flush()
	return b.Bytes()
}

// delivered is what the sandbox still has of the output before those offsets.
func delivered(ctx context.Context, sb *llmsandbox.Sandbox, process uint64, until Offsets) ([2]stream, error) {
	none := [2]stream{{start: until[0]}, {start: until[1]}}
	if until == (Offsets{}) {
		return none, nil
	}
	got := [2]stream{{start: -1}, {start: -1}}
	for l, err := range sb.Logs(ctx, process, nil) {
		if err != nil {
			return none, err
		}
		i := 0
		if l.Stderr {
			i = 1
		}
		if l.Offset >= until[i] {
			continue
		}
		if got[i].start < 0 {
			got[i].start = l.Offset
		}
		got[i].data = append(got[i].data, l.Data[:min(int64(len(l.Data)), until[i]-l.Offset)]...)
	}
	for i := range got {
		if got[i].start+int64(len(got[i].data)) != until[i] {
			got[i] = none[i]
		}
	}
	return got, nil
}

// takeUpAll takes up what a service before this one has left.
func (s *Service) takeUpAll(ctx context.Context) {
	list, err := llmsandbox.List(ctx, s.cfg.Sandbox.Backend)
	if err != nil {
		s.cfg.Log.Warn("programs of a server before this one are taken up when somebody asks for them", "error", err)
		return
	}
	for _, i := range list {
		project := i.Labels[projectLabel]
		if !strings.HasPrefix(i.ID, idPrefix(project)) {
			continue
		}
		s.takeUpSandbox(ctx, replicas.Held{Sandbox: i.ID, Project: project})
	}
}

// letGoPrograms lets programs go on without the service. None is held afterwards.
func (s *Service) letGoPrograms(h *handle) {
	h.programsMu.Lock()
	h.programsGone = true
	held := slices.Collect(maps.Values(h.programs))
	h.programsMu.Unlock()
	for _, p := range held {
		p.process.Detach()
	}
	h.following.Wait()
	h.programsMu.Lock()
	defer h.programsMu.Unlock()
	for _, p := range held {
		if err := s.keepAgain(context.Background(), h, p); err != nil {
			s.cfg.Log.Error("the result of a program is lost", "sandbox", h.sandbox.ID(), "process", p.ID, "error", err)
		}
	}
}
