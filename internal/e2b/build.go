package e2b

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/e2b/envd/process"
	"github.com/llmsandbox/llmsandbox/internal/service/images"
)

const (
	// maxBuildSteps bounds those of a build, and maxSetup the bytes of what a template has beside its files.
	maxBuildSteps, maxSetup = 512, 64 << 10
	// readyInBuild and readyInCreate are how long the command of a template may take to be ready in a build, and when a sandbox is created: SDKs wait a minute for that.
	readyInBuild, readyInCreate = 5 * time.Minute, 50 * time.Second
	// readyEvery is how often a template is asked whether it is ready.
	readyEvery = 250 * time.Millisecond
	// maxLine bounds a line of a log.
	maxLine = 8 << 10
)

// The steps of a build that reasons name beside those that have a number.
const (
	baseStep     = "base"
	finalizeStep = "finalize"
)

// ownImages are images of E2B's that stand for the server's own.
var ownImages = regexp.MustCompile(`^e2bdev/(base|code-interpreter)(:latest)?$`)

// copyFiles unpacks its input and puts what is at $1 in it to $2, files with the mode $3 where there is one. It does so in the sandbox: nothing of the archive is looked at
// outside.
const copyFiles = `set -e
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tar -xpof - -C "$dir"
[ -z "$3" ] || find "$dir" -type f -exec chmod "$3" {} +
if [ -d "$dir/$1" ] && [ ! -L "$dir/$1" ]; then
	mkdir -p "$2"
	find "$dir/$1" -mindepth 1 -maxdepth 1 -exec cp -a {} "$2/" \;
else
	case $2 in */) mkdir -p "$2" ;; *) mkdir -p "$(dirname "$2")" ;; esac
	cp -a "$dir/$1" "$2"
fi
`

// check fails for what no build can keep.
func (in *newBuild) check() error {
	bad := func(text string) error { return refusal(http.StatusBadRequest, text) }
	switch {
	case (in.Image == "") == (in.Template == ""):
		return bad("fromImage, fromTemplate: give one of them")
	case len(in.Registry) > 0 && string(in.Registry) != "null":
		return bad("fromImageRegistry: this server takes images as its operator may have them, without keys of a request")
	case len(in.Steps) > maxBuildSteps:
		return bad(fmt.Sprintf("steps: there are more than %d", maxBuildSteps))
	case strings.ContainsRune(in.Start+in.Ready, 0):
		return bad("startCmd, readyCmd: there is a NUL in them")
	}
	for i := range in.Steps {
		if why := in.Steps[i].check(); why != "" {
			return bad(fmt.Sprintf("steps: step %d, %.20q: %s", i+1, in.Steps[i].Type, why))
		}
	}
	return nil
}

// check tells what is wrong with a step; empty: nothing.
func (st *step) check() string {
	n, least, most := len(st.Args), 1, 1
	switch st.Type {
	case "RUN":
		most = 2
	case "COPY":
		least, most = 2, 4
	case "ENV":
		least, most = 2, math.MaxInt
	case "WORKDIR", "USER":
	default:
		return "there is no such step"
	}
	if n < least || n > most || strings.Contains(strings.Join(st.Args, ""), "\x00") {
		return "it has other arguments"
	}
	switch arg := func(i int) string { return append(st.Args, "", "", "")[i] }; st.Type {
	case "USER":
		if !isOwner(arg(0)) {
			return noOwner
		}
	case "WORKDIR":
		if arg(0) == "" {
			return "the path is missing"
		}
	case "ENV":
		for i := 0; i < n; i += 2 {
			if n%2 != 0 || st.Args[i] == "" || strings.Contains(st.Args[i], "=") {
				return "it has pairs of a name, without =, and a value"
			}
		}
	case "COPY":
		user, group, grouped := strings.Cut(cmp.Or(arg(2), ordinaryUser), ":")
		if !isOwner(user) || grouped && group != user {
			return noOwner
		}
		if _, err := strconv.ParseUint(cmp.Or(arg(3), "0"), 8, 12); err != nil {
			return "the mode is no octal number of permissions"
		}
		if p := path.Clean(arg(0)); arg(0) == "" || arg(1) == "" || path.IsAbs(p) || p == ".." || strings.HasPrefix(p, "../") {
			return "it goes from a relative path of what was uploaded to a path of the template"
		}
	}
	return ""
}

// Images keep no owners of files: in a sandbox, they are all one user's. So other users would have none.
const noOwner = "files of templates belong to user and root only"

func isOwner(user string) bool { return user == ordinaryUser || user == rootUser }

// A worker carries out a build in a sandbox.
type worker struct {
	processService

	build *build
	in    *target
	until time.Time // when the build has to be done
	has   setup
	user  string // who writes files there: the ordinary user, or root where that one may not
}

// build builds what was asked for, and notes what has become of it.
func (s *Server) build(b *build, in *newBuild) {
	ctx, cancel := context.WithCancel(s.stopping)
	defer cancel()
	id, step, err := s.buildFrom(ctx, b, in)
	status, message := http.StatusCreated, ""
	if err != nil {
		status = http.StatusBadRequest
		var said *connect.Error
		switch {
		case s.stopping.Err() != nil:
			status, message = http.StatusServiceUnavailable, "the server is stopping"
		case errors.As(err, &said):
			message = err.Error()
		default:
			r := s.refusalOf(ctx, err)
			status, message = r.Status, r.Message
		}
		s.builds.note(b, "error", step, message)
	}
	in.end(status, outerID(id))
	s.builds.end(b, message, step)
}

// buildFrom does so in a sandbox, whose id it returns. Where it fails, it returns the step that has failed.
func (s *Server) buildFrom(ctx context.Context, b *build, in *newBuild) (id, step string, err error) {
	w := &worker{processService: processService{s}, build: b}
	network, err := s.network(nil, nil)
	if err != nil {
		return "", baseStep, err
	}
	o := llmsandbox.Options{Network: network, Workdir: Home, Labels: map[string]string{buildLabel: b.id}, Limits: b.setup.limits()}
	if in.Template != "" {
		text, err := s.fromTemplate(b.project, in.Template, &o)
		if err != nil {
			return "", baseStep, err
		}
		w.has = setupOf(map[string]string{setupLabel: text})
	} else if !ownImages.MatchString(in.Image) {
		o.Image = in.Image
	}
	w.has.CPUs, w.has.Memory = b.setup.CPUs, b.setup.Memory
	s.builds.note(b, "info", baseStep, "FROM "+cmp.Or(in.Template, in.Image))
	sb, err := s.service.Create(ctx, b.project, o)
	if errors.Is(err, llmsandbox.ErrTemplateNotFound) {
		err = noTemplate(in.Template)
	}
	if err != nil {
		return "", baseStep, err
	}
	defer func() {
		if removed := s.service.Remove(context.WithoutCancel(ctx), b.project, sb.ID()); removed != nil && !isGone(removed) {
			s.cfg.Log.WarnContext(ctx, "remove the sandbox of a build", "sandbox", sb.ID(), "error", removed)
		}
	}()
	if w.in, err = s.target(ctx, sb.ID(), false); err != nil {
		return sb.ID(), baseStep, err
	}
	w.until = time.Now().Add(buildTime)
	if end, set := sb.Deadline(); set && end.Before(w.until) {
		w.until = end
	}
	ctx, cancel := context.WithDeadline(ctx, w.until.Add(-time.Second)) // while the sandbox still is there
	defer cancel()
	step, err = w.work(ctx, in)
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		err = refusal(http.StatusBadRequest, "the build took longer than sandboxes live that ask for no time")
	}
	return sb.ID(), step, err
}

// work carries out the steps and makes the images.
func (w *worker) work(ctx context.Context, in *newBuild) (step string, err error) {
	if _, err := w.script(ctx, w.user, nil, "test -w /"); err != nil {
		w.user = rootUser
	}
	for i := range in.Steps {
		step = strconv.Itoa(i + 1)
		st := &in.Steps[i]
		w.note("info", step, strings.Join(append([]string{st.Type}, st.Args...), " "))
		if err := w.do(ctx, step, st); err != nil {
			return step, err
		}
	}
	if in.Start != "" || in.Ready != "" { // else those of what it is built from
		w.has.Start, w.has.Ready = in.Start, in.Ready
	}
	text, err := json.Marshal(w.has)
	if err == nil && len(text) > maxSetup {
		err = refusal(http.StatusBadRequest, fmt.Sprintf("variables and commands of the template have more than %d bytes", maxSetup))
	}
	if err != nil {
		return finalizeStep, err
	}
	b := w.build
	again, err := w.hasImage(b.project, b.names[0], buildLabel)
	if err != nil {
		return finalizeStep, err
	}
	made := images.Image{Name: b.names[0], Labels: map[string]string{buildLabel: b.id, setupLabel: string(text)}}
	_, skipped, err := w.service.Commit(ctx, b.project, w.in.id, made, again, func() error {
		ctx, cancel := context.WithTimeout(ctx, readyInBuild)
		defer cancel()
		return w.launch(ctx, w.in, &w.has, w.has.Env, func(level, line string) { w.note(level, finalizeStep, line) })
	})
	for _, left := range skipped {
		w.note("warn", finalizeStep, "not in the template: "+left)
	}
	if err == nil {
		err = w.copyImage(ctx, b.project, b.names[0], b.names[1:])
	}
	return finalizeStep, err
}

func (w *worker) note(level, step, message string) { w.builds.note(w.build, level, step, message) }

// do carries out a step.
func (w *worker) do(ctx context.Context, n string, st *step) error {
	arg := func(i int) string { return append(st.Args, "", "", "")[i] }
	dir := cmp.Or(w.has.Workdir, Home)
	switch st.Type {
	case "RUN":
		failed, err := w.line(ctx, w.in, command(arg(0), dir, w.has.Env), cmp.Or(arg(1), w.has.User), func(level, line string) { w.note(level, n, line) })
		if err != nil {
			failed = w.rpcError(ctx, err).Error()
		}
		if failed != "" {
			return refusal(http.StatusBadRequest, fmt.Sprintf("failed to run command '%.1000s': command failed: %s", valid(arg(0)), failed))
		}
	case "ENV":
		w.has.Env = maps.Clone(w.has.Env)
		if w.has.Env == nil {
			w.has.Env = map[string]string{}
		}
		for i := 0; i < len(st.Args); i += 2 {
			w.has.Env[st.Args[i]] = st.Args[i+1]
		}
	case "WORKDIR":
		w.has.Workdir = expand(dir, arg(0))
		_, err := w.script(ctx, w.user, nil, `mkdir -p "$1"`, w.has.Workdir)
		return err
	case "USER":
		w.has.User = arg(0)
		return w.may(ctx, arg(0))
	case "COPY":
		to := expand(dir, arg(1))
		if strings.HasSuffix(arg(1), "/") { // it is a directory, there or not
			to += "/"
		}
		user, _, _ := strings.Cut(arg(2), ":")
		if err := w.may(ctx, cmp.Or(user, w.has.User)); err != nil {
			return err
		}
		return w.copyIn(ctx, st.Hash, arg(0), to, arg(3))
	}
	return nil
}

// copyIn puts what was uploaded at a path of the sandbox.
func (w *worker) copyIn(ctx context.Context, hash, from, to, mode string) error {
	w.builds.mu.Lock()
	f := w.build.uploads.files[hash] // which stays as long as the build
	w.builds.mu.Unlock()
	tar := bufio.NewReader(io.NewSectionReader(f, 0, math.MaxInt64))
	content := io.Reader(tar)
	if head, _ := tar.Peek(2); string(head) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(tar)
		if err != nil {
			return refusal(http.StatusBadRequest, "what was uploaded is no gzip: "+err.Error())
		}
		content = unzipped
	}
	// SDKs have found what matches a pattern: the rest of the path is where it was found.
	from = path.Clean(from)
	if at := strings.IndexAny(from, "*?[{"); at >= 0 {
		from = path.Clean(from[:strings.LastIndexByte("/"+from[:at], '/')])
	}
	_, err := w.script(ctx, w.user, content, copyFiles, from, to, mode)
	return err
}

// may fails for root where it may not write files, as it is where sandboxes were not told to have it.
func (w *worker) may(ctx context.Context, user string) error {
	if user != rootUser {
		return nil
	}
	if _, err := w.script(ctx, user, nil, "test -w /"); err != nil {
		return refusal(http.StatusBadRequest, "user root: sandboxes of this server have no root that could write files: --user root gives them one")
	}
	return nil
}

// script runs a script of the server's as a user, and returns what it has written. It fails where the script does.
func (w *worker) script(ctx context.Context, user string, stdin io.Reader, text string, args ...string) (string, error) {
	if user == ordinaryUser {
		user = ""
	}
	opts := &llmsandbox.ExecOptions{Dir: "/", User: user, Stdin: stdin, Timeout: max(time.Until(w.until), time.Second)}
	res, err := w.in.sandbox.Exec(ctx, append([]string{"/bin/sh", "-c", text, "sh"}, args...), opts)
	switch {
	case isGone(err) || errors.Is(err, llmsandbox.ErrLost):
		return "", err
	case err != nil && user != "":
		return "", connect.NewError(connect.CodeUnauthenticated, fmt.Errorf("invalid username: '%s': %s", user, valid(err.Error())))
	case err != nil:
		return "", err
	case res.ExitCode != 0 || res.Status != llmsandbox.StatusOK:
		return "", refusal(http.StatusBadRequest, fmt.Sprintf("it failed in the sandbox: %.2000s", valid(cmp.Or(strings.TrimSpace(res.Stderr), res.Reason))))
	}
	return res.Stdout, nil
}

// command is a line of a template, as SDKs start those of their users.
func command(line, dir string, env map[string]string) *process.StartRequest {
	return &process.StartRequest{Process: &process.ProcessConfig{Cmd: "/bin/bash", Args: []string{"-l", "-c", line}, Cwd: &dir, Envs: env}, Stdin: new(bool)}
}

// line runs a command to its end, and tells how it has failed; empty: it has not.
func (s processService) line(ctx context.Context, t *target, in *process.StartRequest, user string, note func(level, line string)) (failed string, err error) {
	p := &program{done: make(chan struct{})}
	f := p.join()
	defer p.leave(f)
	if err := s.start(ctx, t, p, in, user); err != nil {
		return "", err
	}
	return p.wait(ctx, t, f, note)
}

// wait waits for a program's end, as line does.
func (p *program) wait(ctx context.Context, t *target, f *follower, note func(level, line string)) (failed string, err error) {
	stdout, stderr := &lineNoter{note: note, level: "info"}, &lineNoter{note: note, level: "warn"}
	defer stdout.rest()
	defer stderr.rest()
	for {
		select {
		case e := <-f.events:
			stdout.add(e.GetData().GetStdout())
			stderr.add(e.GetData().GetStderr())
		case <-p.done:
			if p.end == nil {
				return "", llmsandbox.ErrLost
			}
			if p.end.GetExitCode() != 0 || p.end.Error != nil {
				return cmp.Or(p.end.GetError(), p.end.GetStatus()), nil
			}
			return "", nil
		case <-t.live.ctx.Done():
			return "", llmsandbox.ErrClosed
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// A lineNoter notes what a program writes, line by line.
type lineNoter struct {
	note  func(level, line string)
	level string
	part  []byte
}

func (l *lineNoter) add(b []byte) {
	l.part = append(l.part, b...)
	for {
		at := bytes.IndexByte(l.part, '\n')
		switch {
		case at >= 0:
			l.note(l.level, strings.TrimSuffix(string(l.part[:at]), "\r"))
			l.part = l.part[at+1:]
		case len(l.part) > maxLine:
			l.rest()
		default:
			return
		}
	}
}

func (l *lineNoter) rest() {
	if len(l.part) > 0 {
		l.note(l.level, string(l.part))
		l.part = nil
	}
}

// begin starts what a sandbox that was just created has to run from its beginning, and waits until that is ready.
func (s *Server) begin(ctx context.Context, sb *llmsandbox.Sandbox, project string, has *setup) error {
	if has.Start == "" && has.Ready == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyInCreate)
	defer cancel()
	t := &target{id: sb.ID(), project: project, sandbox: sb, live: s.live(sb)}
	return processService{s}.launch(ctx, t, has, nil, func(string, string) {})
}

// launch starts the start command of a template and waits until the ready command succeeds. That the first one ends is no failure.
func (s processService) launch(ctx context.Context, t *target, has *setup, env map[string]string, note func(level, line string)) error {
	following, cancel := context.WithCancel(ctx)
	var follows sync.WaitGroup
	defer follows.Wait()
	defer cancel()
	if has.Start != "" {
		p := &program{done: make(chan struct{})}
		f := p.join()
		if err := s.start(context.WithoutCancel(ctx), t, p, command(has.Start, has.Workdir, env), has.User); err != nil { // it runs as long as the sandbox
			p.leave(f)
			return err
		}
		follows.Go(func() {
			defer p.leave(f)
			_, _ = p.wait(following, t, f, note)
		})
	}
	if has.Ready == "" {
		return nil
	}
	again := time.NewTicker(readyEvery)
	defer again.Stop()
	for {
		failed, err := s.line(ctx, t, command(has.Ready, has.Workdir, env), has.User, func(string, string) {})
		if err == nil && failed == "" {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return refusal(http.StatusBadRequest, fmt.Sprintf("the ready command of the template has not succeeded in time: at last, %s", cmp.Or(failed, "it took too long")))
		}
	}
}
