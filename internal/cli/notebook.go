package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/configdir"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/notebook"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
	"github.com/llmsandbox/llmsandbox/security"
)

// A notebookFile is a notebook to run.
type notebookFile struct {
	*notebook.Notebook
	name string // of the file
	lang string
}

// isNotebook reports whether code is a notebook: by its file's name, or if it has none, by its content.
func isNotebook(name string, code []byte) bool {
	if name != "" {
		return strings.EqualFold(filepath.Ext(name), ".ipynb")
	}
	return bytes.HasPrefix(bytes.TrimSpace(code), []byte("{")) && bytes.Contains(code, []byte(`"nbformat"`))
}

// parseNotebook reads a notebook. lang, if not empty, is its language whatever it says.
func parseNotebook(name string, data []byte, lang string) (notebookFile, error) {
	n := notebookFile{name: name}
	if name == "" {
		n.name = "notebook.ipynb"
	}
	var err error
	if n.Notebook, err = notebook.Parse(data); err != nil {
		return n, fmt.Errorf("read %s: %w", n.name, err)
	}
	lang = cmp.Or(lang, n.Language(), llmsandbox.DefaultLanguage)
	l, err := all.Get(lang)
	if err != nil {
		return n, fmt.Errorf("run %s: %w, or choose how to run it with --lang", n.name, err)
	}
	n.lang = l.Name
	return n, nil
}

// notebooksIn returns the notebooks of a directory that has no other main file: its main notebook, or all
// of them in the order of their names.
func notebooksIn(dir, lang string) ([]notebookFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the code: %w", err)
	}
	var names []string
	for _, e := range entries {
		if isNotebook(e.Name(), nil) && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		if slices.Contains(mainStems, strings.TrimSuffix(name, filepath.Ext(name))) {
			names = []string{name}
			break
		}
	}
	var list []notebookFile
	for _, name := range names {
		data, err := readSource(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		n, err := parseNotebook(name, data, lang)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// programs are the cells as a policy sees them.
func (n notebookFile) programs() []security.Program {
	var list []security.Program
	for _, c := range n.Code() {
		list = append(list, security.Program{Language: n.lang, Name: fmt.Sprintf("%s:cell %d", n.name, c.Number), Code: []byte(c.Source)})
	}
	return list
}

// check has a policy look at all cells: at each by itself, and at all as one program, since a name
// may be given in one cell and used in another.
func (n notebookFile) check(ctx context.Context, checker *security.Checker, libraries []string) (security.Report, error) {
	cells := n.programs()
	whole := security.Program{Language: n.lang, Libraries: libraries}
	var starts []int // the lines at which cells begin
	for _, c := range cells {
		starts = append(starts, 1+bytes.Count(whole.Code, []byte("\n")))
		whole.Code = append(append(whole.Code, c.Code...), '\n')
	}
	report, err := checker.CheckProgram(ctx, whole)
	if err != nil {
		return report, err
	}
	var found []security.Finding
	for _, f := range report.Findings {
		at := sort.SearchInts(starts, f.Line+1) - 1
		switch {
		case f.Rule == "unreadable": // as a whole it may be: of each cell that is asked below
			continue
		case at >= 0: // else it is a library
			f.File = cells[at].Name
			f.Line, f.EndLine = f.Line-starts[at]+1, f.EndLine-starts[at]+1
		}
		found = append(found, f)
	}
	for _, c := range cells {
		r, err := checker.CheckProgram(ctx, c)
		if err != nil {
			return report, err
		}
		report.Omitted += r.Omitted
		for _, f := range r.Findings {
			if !slices.Contains(found, f) {
				found = append(found, f)
			}
		}
	}
	report.Findings = append([]security.Finding{}, found...)
	report.Blocked = slices.ContainsFunc(found, func(f security.Finding) bool {
		return report.Threshold > security.Safe && f.Severity >= report.Threshold
	})
	return report, nil
}

// checkNotebooks is check of notebooks.
func (f *runFlags) checkNotebooks(ctx context.Context, policy llmsandbox.Policy, list []notebookFile) ([]security.Finding, *llmsandbox.Result, error) {
	f.lines = codeLines{}
	report, err := checkAll(ctx, policy.Checker, nil, list, f.libraries.libraries)
	for _, n := range list {
		maps.Copy(f.lines, linesOf(n.programs()...))
	}
	reason := ""
	if report.Blocked && !policy.WarnOnly {
		reason = (&llmsandbox.RefusedError{Report: report}).Error()
	}
	return report.Findings, f.refused(reason, list[0].lang, report.Findings), err
}

// notebooks runs notebooks in a sandbox, each in a kernel of its own, and returns what became of the
// last one that was run.
func (f *runFlags) notebooks(ctx context.Context, sb *llmsandbox.Sandbox, src source, stdout, stderr io.Writer) (*llmsandbox.Result, error) {
	res := &llmsandbox.Result{
		Status: llmsandbox.StatusOK, SandboxID: sb.ID(), Backend: f.place.Backend, Language: f.lang, Capabilities: sb.Capabilities(),
	}
	if src.dir != "" {
		if err := f.copyBeside(ctx, sb, src.dir); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	for _, n := range src.notebooks {
		r := &notebookRun{flags: f, file: n, result: res, session: &replSession{flags: &replFlags{artifacts: f.artifacts}, stdout: stdout, stderr: stderr}}
		err := r.run(ctx, sb)
		res.Duration = time.Since(began)
		if err := errors.Join(err, r.save()); err != nil {
			return res, err
		}
		if res.Status != llmsandbox.StatusOK && !f.keepGoing {
			break
		}
	}
	return res, nil
}

// copyBeside copies what lies in a directory, but for hidden files, into the working directory.
func (f *runFlags) copyBeside(ctx context.Context, sb *llmsandbox.Sandbox, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the code: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		copied, err := sb.CopyIn(ctx, filepath.Join(dir, e.Name()), path.Join(f.workdir, e.Name()))
		printSkipped(copied)
		if err != nil {
			return err
		}
	}
	return nil
}

// A notebookRun is the execution of one notebook.
type notebookRun struct {
	flags   *runFlags
	file    notebookFile
	session *replSession
	result  *llmsandbox.Result // of the command: gets the first failure, and for --json the output
}

// run executes the code cells in order. Those that it does not come to have no outputs afterwards.
func (r *notebookRun) run(ctx context.Context, sb *llmsandbox.Sandbox) error {
	r.file.Clear()
	k, err := sb.Kernel(ctx, r.file.lang, &llmsandbox.KernelOptions{Dir: r.flags.workdir, AllowInstall: r.flags.install})
	if err != nil {
		return fmt.Errorf("run %s: %w", r.file.name, placed(&r.flags.place, err))
	}
	defer k.Close()
	r.session.kernel = k
	for _, cell := range r.file.Code() {
		if cell.Tagged(notebook.TagSkip) {
			continue
		}
		c, err := r.cell(ctx, cell.Source)
		if c != nil {
			cell.SetOutputs(c.Count, outputsOf(c))
		}
		if err != nil {
			return err
		}
		if c.OK() && !exits(c) || c.Error != nil && cell.Tagged(notebook.TagRaises) {
			continue
		}
		r.failed(cell.Number, c)
		if !r.flags.keepGoing || c.OK() {
			break
		}
	}
	return nil
}

// cell runs a cell and shows what it does, or with --json keeps it.
func (r *notebookRun) cell(ctx context.Context, code string) (*llmsandbox.Cell, error) {
	if !r.flags.json {
		return r.session.cell(ctx, code)
	}
	c, err := r.session.kernel.Run(ctx, code, nil)
	r.result.Stdout += c.Stdout
	if text := c.Value["text/plain"]; text != "" {
		r.result.Stdout += text + "\n"
	}
	r.result.Stderr += c.Stderr
	if c.Error != nil {
		r.result.Stderr += c.Error.Traceback
	}
	r.result.StdoutTruncated = r.result.StdoutTruncated || c.StdoutTruncated
	r.result.StderrTruncated = r.result.StderrTruncated || c.StderrTruncated
	r.result.Artifacts = append(r.result.Artifacts, c.Artifacts...)
	r.result.ArtifactsDropped = append(r.result.ArtifactsDropped, c.ArtifactsDropped...)
	r.result.Network = append(r.result.Network, c.Network...)
	r.result.NetworkDropped += c.NetworkDropped
	return c, err
}

// failed gives the result the first cell that did not end well.
func (r *notebookRun) failed(number int, c *llmsandbox.Cell) {
	if r.result.Status != llmsandbox.StatusOK {
		return
	}
	r.result.Status, r.result.ExitCode, r.result.Signal = c.Status, c.ExitCode, c.Signal
	if c.Status == llmsandbox.StatusError && c.ExitCode == -1 {
		r.result.ExitCode = 1
	}
	if c.OK() {
		return
	}
	r.result.Reason = fmt.Sprintf("cell %d of %s failed", number, r.file.name)
	switch {
	case c.Reason == "" && c.Error != nil:
		line, _, _ := strings.Cut(c.Error.Name+": "+c.Error.Message, "\n")
		r.result.Reason += ": " + termsafe.String(line)
	case c.Reason != "" && r.flags.json: // else it has been said
		r.result.Reason += ": " + c.Reason
	}
}

// save writes the executed notebook where --notebook asks for it.
func (r *notebookRun) save() error {
	if r.flags.notebook == "" {
		return nil
	}
	to := r.flags.notebook
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		to = filepath.Join(to, r.file.name)
	}
	data, err := r.file.Encode()
	if err == nil {
		err = configdir.WriteFile(to, data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("--notebook: %w", err)
	}
	return nil
}

// checkNotebookFlags refuses what notebooks cannot do, before anything is started.
func (f *runFlags) checkNotebookFlags(src source, args []string) error {
	switch {
	case len(src.notebooks) == 0 && f.notebook == "" && !f.keepGoing && !f.install:
		return nil
	case len(src.notebooks) == 0:
		return errors.New("--notebook, --keep-going and --allow-install are for notebooks: give a FILE that ends in .ipynb")
	case len(args) > 0 || f.stdin != "" || f.standard != "" || f.tty:
		return errors.New("a notebook takes no arguments, no --stdin, no --standard and no --tty")
	case f.notebook == "":
		return nil
	}
	info, err := os.Stat(f.notebook)
	if err == nil && info.IsDir() {
		return nil
	}
	if len(src.notebooks) > 1 {
		return fmt.Errorf("--notebook %s: it must be an existing directory, since there are %d notebooks", f.notebook, len(src.notebooks))
	}
	if _, err := os.Stat(filepath.Dir(f.notebook)); err != nil {
		return fmt.Errorf("--notebook: %w", err)
	}
	return nil
}

// outputsOf is what a cell has produced, as a notebook has it.
func outputsOf(c *llmsandbox.Cell) []notebook.Output {
	var list []notebook.Output
	for _, s := range []notebook.Stream{{Name: "stdout", Text: c.Stdout}, {Name: "stderr", Text: c.Stderr}} {
		if s.Text != "" {
			list = append(list, s)
		}
	}
	for _, a := range c.Artifacts {
		if forms := formsOf(a); len(forms) > 0 {
			list = append(list, notebook.Display{Forms: forms})
		}
	}
	if len(c.Value) > 0 {
		list = append(list, notebook.Value{Count: c.Count, Forms: c.Value})
	}
	var failed notebook.Error
	if c.Error != nil {
		failed = notebook.Error(*c.Error)
	}
	switch {
	case c.OK():
		return list
	case c.Reason != "":
		failed.Name, failed.Message = string(c.Status), c.Reason
	case c.Error == nil:
		failed.Name, failed.Message = string(c.Status), fmt.Sprintf("exit code %d", c.ExitCode)
	}
	return append(list, failed)
}

// formsOf are the forms of an artifact that notebooks show; none of a file that the code wrote.
func formsOf(a llmsandbox.Artifact) notebook.Forms {
	if a.Source == "file" {
		return nil
	}
	forms := notebook.Forms{}
	for _, form := range append([]artifact.Form{{MIME: a.MIME, Data: a.Data}}, a.Also...) {
		switch form.MIME {
		case artifact.PNG, artifact.JPEG, artifact.PDF:
			forms[form.MIME] = base64.StdEncoding.EncodeToString(form.Data)
		case artifact.Binary:
		default:
			forms[form.MIME] = string(form.Data)
		}
	}
	if len(forms) > 0 && forms[artifact.Text] == "" {
		forms[artifact.Text] = cmp.Or(a.Title, a.Name)
	}
	return forms
}
