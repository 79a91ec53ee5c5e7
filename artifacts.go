package llmsandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/collect"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// An Artifact is something a run produced beside its output: a picture, a table, a
// page, a file. See package artifact.
type Artifact = artifact.Artifact

// ArtifactOptions say what a run's result carries beside its output: what the
// language's plotting libraries show and save, and the regular files that the run makes
// or changes below the directory "artifacts" of the sandbox's working directory. Of runs that
// go on side by side, the one that ends first gets a file that any of them wrote there.
type ArtifactOptions struct {
	// Off captures nothing.
	Off bool
	// Unshown also captures figures that were made and never shown or saved.
	Unshown bool
	// MaxCount and MaxBytes bound what one run's result carries, MaxBytes its whole
	// size; 0 means 64 and 64 MiB. Result.ArtifactsDropped says what was over them.
	MaxCount int
	MaxBytes int64
}

const (
	defaultArtifacts     = 64
	defaultArtifactBytes = 64 << 20
	// mostArtifacts is what a search in the sandbox answers with at most.
	mostArtifacts     = 4096
	mostArtifactBytes = 1 << 30
)

// resolve fills in the defaults.
func (o ArtifactOptions) resolve() (ArtifactOptions, error) {
	switch {
	case o.MaxCount < 0 || o.MaxCount > mostArtifacts:
		return o, fmt.Errorf("at most %d artifacts: %w: use a number from 1 to %d, or 0 for %d; Off captures nothing", o.MaxCount, ErrInvalid, mostArtifacts, defaultArtifacts)
	case o.MaxBytes < 0 || o.MaxBytes > mostArtifactBytes:
		return o, fmt.Errorf("artifacts of at most %d bytes: %w: use a number from 1 to %d, or 0 for %d", o.MaxBytes, ErrInvalid, mostArtifactBytes, defaultArtifactBytes)
	}
	o.MaxCount = cmp.Or(o.MaxCount, defaultArtifacts)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultArtifactBytes)
	return o, nil
}

// Artifacts returns what all runs since the sandbox was opened, or since
// [Sandbox.ClearArtifacts], have produced, in the order in which the runs ended. They are
// bounded as one run's are by the sandbox's own ArtifactOptions; dropped says what is
// over that.
func (s *Sandbox) Artifacts() (artifacts []Artifact, dropped []string) {
	return s.produced.all()
}

// ClearArtifacts forgets them. Files in the sandbox stay.
func (s *Sandbox) ClearArtifacts() { s.produced.clear() }

// produced is what the runs of a sandbox have produced so far.
type produced struct {
	maxCount int
	maxBytes int64
	// seen are the files that are artifacts of a run already.
	seen collect.Seen

	mu        sync.Mutex
	artifacts []Artifact
	bytes     int64
	over      int
	dropped   []string
}

// maxDroppedKept bounds the sentences that are kept.
const maxDroppedKept = 64

// keepArtifacts sets what runs collect unless they say otherwise.
func (s *Sandbox) keepArtifacts(o ArtifactOptions) {
	s.artifacts = o
	s.produced.maxCount, s.produced.maxBytes = o.MaxCount, o.MaxBytes
}

func (p *produced) add(artifacts []Artifact, dropped []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range artifacts {
		size := int64(len(a.Data))
		for _, form := range a.Also {
			size += int64(len(form.Data))
		}
		if len(p.artifacts) >= p.maxCount || p.bytes+size > p.maxBytes {
			p.over++
			continue
		}
		p.bytes += size
		p.artifacts = append(p.artifacts, a)
	}
	p.dropped = append(p.dropped, dropped[:min(len(dropped), maxDroppedKept-len(p.dropped))]...)
}

func (p *produced) all() ([]Artifact, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dropped := slices.Clone(p.dropped)
	if p.over > 0 {
		dropped = append(dropped, fmt.Sprintf("%d artifacts were left out: a sandbox keeps at most %d of %d bytes together, until they are cleared", p.over, p.maxCount, p.maxBytes))
	}
	return slices.Clone(p.artifacts), dropped
}

func (p *produced) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.artifacts, p.bytes, p.over, p.dropped = nil, 0, 0, nil
}

// collectGrace bounds how long artifacts are collected after a run or cell.
const collectGrace = 30 * time.Second

// A collection catches the artifacts of one run, or of one kernel cell by cell. Its
// files go into the sandbox with the process's start, so it costs no round trip; the end
// costs one where nothing was captured.
type collection struct {
	sandbox *Sandbox
	id      string
	options ArtifactOptions
	// root holds a marker, the capture directory and the language's own files.
	root    string
	capture language.Capture
	// since is the sandbox's clock when a kernel's artifacts were last looked for.
	since int64
}

// newCollection prepares the capture of what a language's process produces. id names it
// in the sandbox; ahead says that it is started before its code is known; current returns a variable of the process's environment.
func (s *Sandbox) newCollection(lang *language.Language, id string, o ArtifactOptions, ahead bool, current func(string) string) *collection {
	c := s.collectionOf(id, o)
	src := language.CaptureSource{
		Dir: c.dir(), Support: c.support(), Unshown: o.Unshown,
		MaxCount: o.MaxCount, MaxBytes: o.MaxBytes, Current: current,
	}
	switch {
	case ahead:
		src.Imports, src.Enters = s.imports, s.zygote
		c.capture = lang.Ahead.Capture(src)
	case lang.Capture != nil:
		c.capture = lang.Capture(src)
	}
	return c
}

// collectionOf is the collection of an id, also one that another handle has prepared.
func (s *Sandbox) collectionOf(id string, o ArtifactOptions) *collection {
	return &collection{sandbox: s, id: id, options: o, root: path.Join(s.machine.Guest().TempDir, ".llmsandbox-"+id)}
}

func (c *collection) dir() string     { return path.Join(c.root, "capture") }
func (c *collection) support() string { return path.Join(c.root, "support") }
func (c *collection) marker() string  { return path.Join(c.root, "began") }

// shared is the directory where programs of any language put what they have made.
func (c *collection) shared() string {
	return path.Join(c.sandbox.machine.Guest().Workdir, "artifacts")
}

// files are written before the process starts.
func (c *collection) files() []language.File {
	files := []language.File{{Path: c.dir() + "/"}, {Path: c.marker(), Mode: 0o600}}
	if !c.sandbox.keepsFiles { // it would stay
		files = append(files, language.File{Path: c.shared() + "/"})
	}
	return append(files, c.capture.Files...)
}

// env is added to the process's environment.
func (c *collection) env() []string { return c.capture.Env }

// finish returns what a run has produced, and removes its directory. It works also when the
// run's context has ended.
func (c *collection) finish(ctx context.Context) ([]Artifact, []string) {
	return c.collect(ctx, collect.Request{Marker: c.marker(), Discard: c.root})
}

// cell returns what a kernel's process has produced since it began, or since the last
// call.
func (c *collection) cell(ctx context.Context) ([]Artifact, []string) {
	req := collect.Request{SinceNanos: c.since}
	if c.since == 0 {
		req.Marker = c.marker()
	}
	return c.collect(ctx, req)
}

func (c *collection) collect(ctx context.Context, req collect.Request) ([]Artifact, []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), collectGrace)
	defer cancel()
	req.Capture, req.Files = c.dir(), c.shared()
	req.MaxCount, req.MaxBytes = c.options.MaxCount, c.options.MaxBytes
	req.Seen = &c.sandbox.produced.seen
	client, err := c.sandbox.link.Client(ctx)
	var res collect.Result
	if err == nil {
		res, err = collect.Collect(ctx, client, req)
	}
	if err != nil {
		res.Dropped = append(res.Dropped, fmt.Sprintf("artifacts could not be collected to the end: %v", c.sandbox.link.Explain(ctx, err)))
	}
	if res.NowNanos != 0 {
		c.since = res.NowNanos
	}
	c.sandbox.produced.add(res.Artifacts, res.Dropped)
	return res.Artifacts, res.Dropped
}

// capture makes a plan's files catch what the run produces, whose environment is
// env and that of the plan's last step.
func (r *run) capture(plan *language.Plan, env []string) {
	if r.language == nil || r.artifacts.Off || len(plan.Steps) == 0 {
		return
	}
	if r.collection == nil {
		env = environ.AddMissing(env, plan.Steps[len(plan.Steps)-1].Env)
		r.collection = r.sandbox.newCollection(r.language, r.sandbox.runs.next(), r.artifacts, false, func(name string) string { return environ.Value(env, name) })
	}
	plan.Files = append(plan.Files, r.collection.files()...)
}

// collect gives a result what the run has produced. A process that goes on without this
// handle is none of it: the handle that attaches to it collects.
func (r *run) collect(ctx context.Context, res *Result, err error) {
	if r.collection == nil || r.started.IsZero() || errors.Is(err, ErrDetached) || r.sandbox.link.Alive() != nil {
		return
	}
	if r.opts.keepChildren {
		// They may go on to use what is there.
		res.Artifacts, res.ArtifactsDropped = r.collection.cell(ctx)
		return
	}
	res.Artifacts, res.ArtifactsDropped = r.collection.finish(ctx)
}

// A runTag is the agent's tag of a run's process, which programs do not see: with it another
// handle collects the artifacts.
type runTag struct {
	collection   string // its id
	keepChildren bool
}

const runTagBegin, runTagKeeps, runTagKills = "run", "keeps", "kills"

func (t runTag) String() string {
	children := runTagKills
	if t.keepChildren {
		children = runTagKeeps
	}
	return strings.Join([]string{runTagBegin, t.collection, children}, " ")
}

func parseRunTag(text string) (runTag, bool) {
	f := strings.Split(text, " ")
	if len(f) != 3 || f[0] != runTagBegin || !validID(f[1]) {
		return runTag{}, false
	}
	return runTag{collection: f[1], keepChildren: f[2] == runTagKeeps}, true
}

// adopt has the run collect what a process of that tag produces.
func (r *run) adopt(tag string) {
	t, ok := parseRunTag(tag)
	if !ok || r.sandbox.artifacts.Off {
		return
	}
	r.collection = r.sandbox.collectionOf(t.collection, r.sandbox.artifacts)
	r.opts.keepChildren = t.keepChildren
}
