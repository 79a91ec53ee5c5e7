package llmsandbox

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/collect"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// collectGrace bounds how long artifacts are collected after a run or cell.
const collectGrace = 30 * time.Second

// A collection catches the artifacts of one run, or of one kernel cell by cell. Its
// files go into the sandbox with the process's start, so it costs no round trip; the end
// costs one where nothing was captured.
type collection struct {
	sandbox *Sandbox
	options ArtifactOptions
	// root holds a marker, the capture folder and the language's own files.
	root    string
	capture language.Capture
	// since is the sandbox's clock when a kernel's artifacts were last looked for.
	since int64
}

// newCollection prepares the capture of what a language's process produces. id names it
// in the sandbox; ahead is the main file of an interpreter that is started ahead, or
// empty; current returns a variable of the process's environment.
func (s *Sandbox) newCollection(lang *language.Language, id string, o ArtifactOptions, ahead string, current func(string) string) *collection {
	c := &collection{sandbox: s, options: o, root: path.Join(s.machine.Guest().TempDir, ".llmsandbox-"+id)}
	if lang.Capture != nil {
		c.capture = lang.Capture(language.CaptureSource{
			Dir: c.dir(), Support: path.Join(c.root, "support"), Unshown: o.Unshown,
			MaxCount: o.MaxCount, MaxBytes: o.MaxBytes, Ahead: ahead, Marker: c.marker(), Current: current,
		})
	}
	return c
}

func (c *collection) dir() string    { return path.Join(c.root, "capture") }
func (c *collection) marker() string { return path.Join(c.root, "began") }

// folder is where programs of any language put what they have made.
func (c *collection) folder() string {
	return path.Join(c.sandbox.machine.Guest().Workdir, "artifacts")
}

// files are written before the process starts.
func (c *collection) files() []language.File {
	return append([]language.File{
		{Path: c.dir() + "/"}, {Path: c.folder() + "/"}, {Path: c.marker(), Mode: 0o600},
	}, c.capture.Files...)
}

// env is added to the process's environment.
func (c *collection) env() []string { return c.capture.Env }

// finish returns what a run has produced, and removes its folder. It works also when the
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
	req.Capture, req.Files = c.dir(), c.folder()
	req.MaxCount, req.MaxBytes = c.options.MaxCount, c.options.MaxBytes
	req.Seen = &c.sandbox.produced.seen
	client, err := c.sandbox.link.get(ctx)
	var res collect.Result
	if err == nil {
		res, err = collect.Collect(ctx, client, req)
	}
	if err != nil {
		res.Dropped = append(res.Dropped, fmt.Sprintf("artifacts could not be collected to the end: %v", c.sandbox.explain(ctx, err)))
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
		r.collection = r.sandbox.newCollection(r.language, r.sandbox.runs.next(), r.artifacts, "", func(name string) string { return environ.Value(env, name) })
	}
	plan.Files = append(plan.Files, r.collection.files()...)
}

// collect gives a result what the run has produced.
func (r *run) collect(ctx context.Context, res *Result) {
	if r.collection == nil || r.started.IsZero() || r.sandbox.alive() != nil {
		return
	}
	if r.opts.keepChildren {
		// They may go on to use what is there.
		res.Artifacts, res.ArtifactsDropped = r.collection.cell(ctx)
		return
	}
	res.Artifacts, res.ArtifactsDropped = r.collection.finish(ctx)
}
