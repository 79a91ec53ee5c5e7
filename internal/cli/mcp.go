package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/mcpenv"
	"github.com/llmsandbox/llmsandbox/mcp"
)

// mcpStop is how long sandboxes may take to go when the server ends.
const mcpStop = 20 * time.Second

func newMCPCommand() *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp [flags]",
		Short: "Serve sandboxes to agents over the Model Context Protocol",
		Long: `Serve tools that run code in sandboxes over the Model Context Protocol. An MCP client starts
this command and talks to it over standard input and output. llmsandbox serve has the tools over
HTTP. Your flags set what sandboxes may do; tools cannot go beyond them.

The server opens a sandbox first, and exits with the reason if that fails. It ends with its
client, or on SIGINT or SIGTERM, and removes its sandboxes.`,
		Example: `  llmsandbox mcp
  llmsandbox mcp --memory 1g --timeout 2m --network allow=example.org --policy production
  llmsandbox mcp --backend docker --warm-language python --warm-language javascript`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := f.serve(cmd.Context(), cmd.Flags())
			if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
				return nil // it was asked to end, and has
			}
			return opening(cmd.Context(), &f.place, f.image, err)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

// takeStdout keeps standard output for the protocol: whatever else would print goes to
// standard error.
func takeStdout() io.WriteCloser {
	out := os.Stdout
	os.Stdout = os.Stderr
	return out
}

func (f *mcpFlags) serve(ctx context.Context, set flagSet) error {
	out := takeStdout()
	level, err := logLevel(f.log)
	if err != nil {
		return err
	}
	log := logAt(level)
	cfg, err := f.config(set, log)
	if err != nil {
		return err
	}
	if cfg.Sandbox.Environment == noEnvironment && cfg.Sandbox.Template != "" {
		return errors.New("--environment none and --template exclude each other: leave one of them out, or use a template without an environment")
	}
	if cfg.Sandbox.Environment == "" && cfg.Sandbox.Template == "" {
		cfg.Sandbox.Environment = installedDefault(ctx, cfg, log)
	}
	if cfg.Sandbox.Environment == noEnvironment {
		cfg.Sandbox.Environment = ""
	}
	server, err := mcp.New(&cfg)
	if err != nil {
		return err
	}
	checking, checkedEnough := context.WithCancel(ctx)
	defer checkedEnough()
	if err = checkFirst(checking, server, &f.place, log); err == nil {
		if isTerminal(os.Stdin) {
			fmt.Fprintln(os.Stderr, "llmsandbox: waiting for an MCP client on stdin (Ctrl-D ends); docs/mcp.md shows how to configure clients")
		}
		err = server.RunStdio(ctx, os.Stdin, out)
	}
	checkedEnough()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), mcpStop)
	defer cancel()
	return errors.Join(err, server.Close(stop))
}

// noEnvironment is the --environment without any.
const noEnvironment = "none"

// installedDefault is the built-in environment, if it is installed where Python's sandboxes are; otherwise "".
func installedDefault(ctx context.Context, cfg mcp.Config, log *slog.Logger) string {
	o := llmsandbox.Options{Backend: cfg.Sandbox.Backend, Image: cfg.Sandbox.Image, Environment: llmsandbox.DataScience}
	for name, image := range cfg.Images {
		if l, err := all.Get(name); err == nil && l.Name == llmsandbox.DefaultLanguage {
			o.Image = image
		}
	}
	list, err := llmsandbox.Environments(ctx, &o)
	if err != nil { // a backend that does not work says so soon
		log.Debug("it is not known whether the environment is installed", "name", o.Environment, "error", err)
	}
	if len(list) == 1 && list[0].Installed {
		return o.Environment
	}
	return noEnvironment
}

// mcpPatience is how long clients are kept waiting while sandboxes are tried: some clients
// give a server ten seconds to start.
const mcpPatience = 5 * time.Second

// checkFirst tries whether sandboxes can be opened, and fails with the reason why not. What
// takes longer, such as pulling an image, goes on while clients are served.
func checkFirst(ctx context.Context, server *mcp.Server, p *place, log *slog.Logger) error {
	checked := make(chan error, 1)
	go func() { // Server.Close ends it
		found, err := server.Check(ctx)
		if message := unenforced(found, p); err == nil && message != "" {
			fmt.Fprintln(stderr, message)
		}
		checked <- err
	}()
	select {
	case err := <-checked:
		return err
	case <-time.After(mcpPatience):
	}
	log.Warn("sandboxes are still being prepared: the first calls may take longer")
	go func() {
		if err := <-checked; err != nil && ctx.Err() == nil {
			log.Error("calls will fail: no sandbox can be opened", "error", err)
		}
	}()
	return nil
}

// mcpFlags are what the operator of a server sets.
type mcpFlags struct {
	sandboxFlags
	policy        policyFlags
	timeout       string
	images        []string
	languages     []string
	noLibraries   bool
	warm          int
	zygote        bool
	warmLanguages []string
	maxCalls      int
	maxSessions   int
	ttl, idle     string
	commit        bool
	log           string
}

func (f *mcpFlags) register(set *pflag.FlagSet) {
	f.registerBounds(set)
	f.registerOwnWorkdir(set)
	if name := mcpenv.Backend(os.Getenv); name != "" {
		f.place.Backend, set.Lookup("backend").DefValue = name, name
		setOnlyHere(set, "backend")
	}
	f.policy.register(set)
	set.StringVar(&f.environment, "environment", "", "environment `NAME` or 'none' (default: data-science if installed)")
	set.StringVar(&f.timeout, "timeout", "", "longest time limit of a call: `DURATION` such as 2m (default 5m)")
	set.StringArrayVar(&f.images, "image-for", nil, "use another image for a language: `LANGUAGE=IMAGE` (repeatable)")
	set.StringArrayVar(&f.languages, "language", nil, "offer only this `LANGUAGE` (repeatable; default: all)")
	registerLanguageFile(set, &f.declared)
	set.BoolVar(&f.noLibraries, "no-libraries", false, "do not let clients install libraries")
	set.IntVar(&f.warm, "warm", 2, "keep `NUMBER` of sandboxes ready for each warm language")
	set.StringArrayVar(&f.warmLanguages, "warm-language", nil, "keep sandboxes for this `LANGUAGE` ready (repeatable; default: python)")
	registerZygote(set, &f.zygote)
	set.IntVar(&f.maxCalls, "max-calls", 8, "`NUMBER` of calls that can use a sandbox at once")
	set.IntVar(&f.maxSessions, "max-sessions", 16, "`NUMBER` of sessions that can be open at the same time")
	set.StringVar(&f.ttl, "session-ttl", "1h", "longest lifetime of a session: `DURATION`")
	set.StringVar(&f.idle, "session-idle", "15m", "end a session that gets no call for this `DURATION`")
	set.BoolVar(&f.commit, "commit", false, "create an image after each execute_code (docker and podman); the result contains its tag")
	set.StringVar(&f.log, "log", "warn", "log `LEVEL`: debug, info, warn or error")
}

// config turns flags and environment into the server's configuration.
func (f *mcpFlags) config(set flagSet, log *slog.Logger) (mcp.Config, error) {
	cfg := mcp.Config{
		Version: version, NoLibraries: f.noLibraries, Languages: f.languages, WarmLanguages: f.warmLanguages,
		Warm: f.warm, Zygote: f.zygote, MaxCalls: f.maxCalls, MaxSessions: f.maxSessions, Log: log,
	}
	if f.warm == 0 {
		cfg.Warm = -1 // zero is the default there
	}
	if err := cmp.Or(atLeast(number{"warm", f.warm, 0}, number{"max-calls", f.maxCalls, 1}, number{"max-sessions", f.maxSessions, 1}), f.checkServer(f.zygote)); err != nil {
		return cfg, err
	}
	if err := f.variables(set, log); err != nil {
		return cfg, err
	}
	if f.commit && !f.place.onEngine() {
		return cfg, fmt.Errorf("--commit is for container engines, and the backend is %s: add --backend docker or --backend podman", f.place.Backend)
	}
	err := cmp.Or(into(&cfg.Sandbox)(f.given()), into(&cfg.Sandbox.Limits.Timeout)(timeoutFlag("timeout", f.timeout)))
	if err != nil {
		return cfg, err
	}
	complete, err := f.complete(cfg.Sandbox, false)
	if err != nil {
		return cfg, err
	}
	cfg.Sandbox.Backend = complete.Backend
	if complete.Limits.Timeout == llmsandbox.Unlimited {
		return cfg, errors.New("--timeout unlimited: calls to a server need an end; use a duration such as 1h")
	}
	if f.commit {
		cfg.Commit = commitNew
	}
	err = cmp.Or(
		into(&cfg.Sandbox.Policy)(f.policy.options()),
		into(&cfg.Images)(pairs("image-for", f.images)),
		into(&cfg.SessionTTL)(durationFlag("session-ttl", f.ttl)),
		into(&cfg.SessionIdle)(durationFlag("session-idle", f.idle)),
	)
	return cfg, err
}

// A flagSet tells whether a flag was given.
type flagSet interface{ Changed(name string) bool }

// variables fills in what no flag says from the variables that a client's configuration
// sets.
func (f *mcpFlags) variables(set flagSet, log *slog.Logger) error {
	for _, name := range mcpenv.Unknown(os.Environ()) {
		log.Warn("a variable that looks like one of a sandbox is not known, and has no effect", "name", name)
	}
	var keys []string
	for _, option := range f.place.Engine.RuntimeOptions {
		key, _, _ := strings.Cut(option, "=")
		keys = append(keys, "runtime-option "+key)
	}
	e, err := mcpenv.Read(os.Getenv, f.place.Backend, func(flag string) bool {
		return slices.Contains(keys, flag) || set.Changed(flag)
	})
	if err != nil {
		return err
	}
	if e.Memory != "" {
		f.memory = e.Memory
	}
	if e.CPUs != "" {
		f.cpus = e.CPUs
	}
	if e.Namespace != "" {
		f.place.Cluster.Namespace = e.Namespace
	}
	for _, o := range e.Options {
		f.place.Engine.RuntimeOptions = append(f.place.Engine.RuntimeOptions, o.Key+"="+o.Value)
	}
	f.commit = f.commit || e.Commit
	// A server opens one sandbox after another: to get the image anew for each is only
	// done when it is asked for.
	o, err := withTemplate(llmsandbox.Options{Template: f.template, Image: f.image})
	if err != nil {
		return err
	}
	named := o.Image != "" || f.place.Engine.Dockerfile != ""
	f.place.Engine.KeepImage = f.place.Engine.KeepImage || f.place.onEngine() && named && !e.RemoveImage
	return nil
}

// commitNew makes an image under a tag that no image has.
func commitNew(ctx context.Context, sb *llmsandbox.Sandbox, language string) (string, error) {
	tag := "llmsandbox/mcp-" + language + ":" + time.Now().UTC().Format("20060102-150405") + "-" + strings.ToLower(rand.Text()[:10])
	if _, err := commit(ctx, sb, tag, ""); err != nil {
		return "", err
	}
	return tag, nil
}
