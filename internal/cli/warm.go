package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/environments"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
	"github.com/llmsandbox/llmsandbox/internal/supervisor"
	"github.com/llmsandbox/llmsandbox/internal/templates"
	"github.com/llmsandbox/llmsandbox/internal/warm"
)

// defaultWait is how long a sandbox waits for a run.
const defaultWait = 10 * time.Minute

// A warmRun is a run with --warm, which may get a sandbox that waits for it.
type warmRun struct {
	order   waitOrder
	claimed *warm.Claimed // nil: the run has a sandbox of its own
}

// A waitOrder tells the wait-warm process which sandbox to open. It is sent on standard input, because other users can
// read a command line, and the flags may have variables of the sandbox.
type waitOrder struct {
	Key    string
	Number int
	Flags  []string
}

// planWarm returns nil where --warm is not given. Where only a configuration asks for it, it does so too for what
// cannot be combined with it.
func (f *runFlags) planWarm(flags *pflag.FlagSet, o llmsandbox.Options) (*warmRun, error) {
	switch {
	case f.warm < 0:
		return nil, tooSmall("warm", strconv.Itoa(f.warm), "0")
	case f.warm > warm.Most:
		return nil, tooLarge("warm", strconv.Itoa(f.warm), strconv.Itoa(warm.Most))
	case f.warm == 0:
		return nil, nil
	}
	if err := f.checkWarm(o); err != nil {
		if flags.Changed("warm") {
			return nil, err
		}
		return nil, nil
	}
	parts, err := f.named(o)
	if err != nil {
		return nil, err
	}
	w := &warmRun{order: waitOrder{Number: f.warm, Flags: f.sandboxArgs(flags)}}
	if w.order.Key, err = warm.Key(append(parts, w.order.Flags...)); err != nil {
		return nil, fmt.Errorf("--warm: %w", err)
	}
	return w, nil
}

// checkWarm says what a sandbox that waits cannot have.
func (f *runFlags) checkWarm(o llmsandbox.Options) error {
	if f.place.Backend != localName || runtime.GOOS != "linux" {
		return errors.New("--warm is for the local backend on Linux: leave it out")
	}
	given := named([]given{
		{"secret", len(f.secrets.secrets) > 0}, {"secret-file", len(f.secrets.files) > 0}, {"mount", len(f.mounts) > 0}, {"volume", len(f.volumes) > 0},
		{"network", len(o.Network.Allow) > 0 || o.Network.Mode != "" && o.Network.Mode != llmsandbox.NetworkNone}, {"lib-from", f.libraries.from != ""}, {"allow-install", f.install}, {"keep", f.keep}, {"commit", f.commit != ""},
	})
	if len(given) > 0 {
		return fmt.Errorf("--warm and --%s exclude each other: a sandbox that waits has no access to anything outside, and ends with its only run; leave one of them out", given[0])
	}
	if at, err := ociimage.Locate(o.Image); o.Image != "" && err == nil && at.OnDisk() {
		return fmt.Errorf("--warm and --image %s exclude each other: a file may change while a sandbox waits; leave --warm out, or use an image of a registry", o.Image)
	}
	return nil
}

// named makes names of flags mean the same in another directory, and returns what they stand for now.
func (f *runFlags) named(o llmsandbox.Options) (state []string, err error) {
	l, err := all.Get(cmp.Or(f.lang, llmsandbox.DefaultLanguage))
	if err != nil {
		return nil, err
	}
	f.lang = l.Name
	for i, file := range f.declared {
		if f.declared[i], err = filepath.Abs(file); err != nil {
			return nil, fmt.Errorf("--language-file %s: %w", file, err)
		}
	}
	if l.Declaration != nil {
		state = append(state, string(l.Declaration))
	}
	if f.template != "" {
		text, _, err := templates.Read(f.template)
		if err != nil {
			return nil, err
		}
		state = append(state, string(text))
	}
	if o.Image != "" {
		store, err := imageStore()
		if err != nil {
			return nil, err
		}
		image, err := store.Inspect(o.Image)
		if err != nil && !errors.Is(err, llmsandbox.ErrImageNotFound) { // it is fetched
			return nil, err
		}
		state = append(state, image.ID)
	}
	if o.Environment == "" {
		return state, nil
	}
	path, err := environments.Path(o.Environment)
	if err != nil || path == "" {
		return state, err
	}
	if environments.IsPath(f.environment) {
		f.environment = path
	}
	info, err := os.Stat(path)
	if err != nil {
		return state, nil // opening says what is wrong
	}
	return append(state, fmt.Sprint(info.Size(), info.ModTime().UnixNano())), nil
}

// sandboxArgs are the flags that say which sandbox a run has.
func (f *runFlags) sandboxArgs(flags *pflag.FlagSet) []string {
	var args []string
	waitFlags(&sandboxFlags{}).VisitAll(func(known *pflag.Flag) {
		flag := flags.Lookup(known.Name)
		list, many := flag.Value.(pflag.SliceValue)
		switch {
		case many:
			for _, value := range list.GetSlice() {
				args = append(args, "--"+flag.Name+"="+value)
			}
		case flag.Value.String() != flag.DefValue:
			args = append(args, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	return args
}

// waitFlags are those that make a sandbox which waits.
func waitFlags(f *sandboxFlags) *pflag.FlagSet {
	set := pflag.NewFlagSet(waitCommand, pflag.ContinueOnError)
	f.registerSandbox(set)
	f.registerIdle(set)
	return set
}

// open takes a sandbox that waits for a run with these options; nil: there is none.
func (w *warmRun) open(ctx context.Context, o llmsandbox.Options) (*llmsandbox.Sandbox, error) {
	if w == nil {
		return nil, nil
	}
	c, err := warm.Claim(w.order.Key)
	if c == nil || err != nil {
		return nil, err
	}
	sb, err := llmsandbox.Attach(ctx, c.ID, &llmsandbox.AttachOptions{
		Backend: o.Backend, Language: o.Language, Limits: llmsandbox.Limits{Timeout: o.Limits.Timeout, Output: o.Limits.Output}, Progress: o.Progress, Artifacts: o.Artifacts,
	})
	if err == nil && sb.Labels()[warm.Label] == w.order.Key {
		w.claimed = c
		return sb, nil
	}
	c.Release()
	if err == nil {
		err = fmt.Errorf("sandbox %s does not wait for this run: %w", c.ID, sb.Close())
	}
	if errors.Is(err, llmsandbox.ErrNotFound) { // it has just died
		return nil, nil
	}
	return nil, err
}

// next has a sandbox wait for the next run. The owner of one that this run has had sees to that itself, once this
// process has ended.
func (w *warmRun) next(ctx context.Context) {
	if w == nil || w.claimed != nil || ctx.Err() != nil {
		return
	}
	self, err := os.Executable()
	if err == nil {
		err = warm.Start(w.order.Key, w.order.Number, []string{self, waitCommand}, w.order)
	}
	if err != nil {
		stderr.note("llmsandbox: warning: no sandbox is made ready for the next run: " + err.Error())
	}
}

const waitCommand = "wait-warm"

// newWaitCommand is the process that owns a sandbox which waits for a run. It is started by `run --warm`.
func newWaitCommand() *cobra.Command {
	return &cobra.Command{
		Use:    waitCommand,
		Short:  "Own a sandbox that waits for a run (started by run --warm)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var order waitOrder
			if err := supervisor.Order(&order); err != nil {
				return err
			}
			var f sandboxFlags
			if err := waitFlags(&f).Parse(order.Flags); err != nil {
				return err
			}
			if err := loadLanguageFiles(f.declared); err != nil {
				return err
			}
			wait, err := durationFlag("idle", f.idle)
			if err == nil {
				err = supervisor.LetGo()
			}
			if err != nil {
				return err
			}
			return warm.Keep(cmd.Context(), order.Key, order.Number, cmp.Or(wait, defaultWait), func(ctx context.Context) (warm.Sandbox, error) {
				return f.openToWait(ctx, order.Key)
			})
		},
	}
}

// openToWait opens a sandbox, with its interpreter started if that is one that another process can use.
func (f *sandboxFlags) openToWait(ctx context.Context, key string) (*llmsandbox.Sandbox, error) {
	o, err := f.options(false)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{warm.Label: key}
	maps.Copy(labels, o.Labels)
	o.Labels, o.IdleTimeout = labels, 0
	l, err := all.Get(cmp.Or(o.Language, llmsandbox.DefaultLanguage))
	if err != nil {
		return nil, err
	}
	sb, err := llmsandbox.Open(ctx, &o)
	if err != nil {
		return nil, err
	}
	if l.Ahead == nil || !l.Ahead.Forks || len(o.Imports) > 0 { // with them, Open has done so
		return sb, nil
	}
	if err := sb.Prepare(ctx); err != nil && !errors.Is(err, llmsandbox.ErrUnsupported) {
		return nil, errors.Join(err, sb.Close())
	}
	return sb, nil
}
