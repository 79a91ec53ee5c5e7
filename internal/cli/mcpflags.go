package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/mcpenv"
	"github.com/llmsandbox/llmsandbox/mcp"
)

// mcpFlags are what the operator of a server sets.
type mcpFlags struct {
	sandboxFlags
	policy        policyFlags
	http          mcpHTTPFlags
	timeout       string
	images        []string
	languages     []string
	noLibraries   bool
	warm          int
	warmLanguages []string
	maxCalls      int
	maxSessions   int
	ttl, idle     string
	commit        bool
	log           string
}

func (f *mcpFlags) register(set *pflag.FlagSet) {
	f.registerBounds(set)
	if name := mcpenv.Backend(os.Getenv); name != "" {
		f.place.Backend, set.Lookup("backend").DefValue = name, name
	}
	f.policy.register(set)
	f.http.register(set)
	set.StringVar(&f.timeout, "timeout", "", "wall time that a call may ask for at most, such as 2m (default 5m)")
	set.StringArrayVar(&f.images, "image-for", nil, "`LANGUAGE=IMAGE`: another root filesystem for a language (repeatable)")
	set.StringArrayVar(&f.languages, "language", nil, "offer this `LANGUAGE` (repeatable; default: all)")
	set.BoolVar(&f.noLibraries, "no-libraries", false, "refuse to install libraries")
	set.IntVar(&f.warm, "warm", 2, "sandboxes kept ready for each warm language; 0: none")
	set.StringArrayVar(&f.warmLanguages, "warm-language", nil, "keep sandboxes of this `LANGUAGE` ready (repeatable; default: python)")
	set.IntVar(&f.maxCalls, "max-calls", 8, "calls that may use a sandbox at the same time")
	set.IntVar(&f.maxSessions, "max-sessions", 16, "sessions that may be open at the same time")
	set.StringVar(&f.ttl, "session-ttl", "1h", "how long a session may live")
	set.StringVar(&f.idle, "session-idle", "15m", "how long a session may live without a call")
	set.BoolVar(&f.commit, "commit", false, "on container engines: after each execute_code, make an image of its sandbox under a new tag, which the result names")
	set.StringVar(&f.log, "log", "warn", "what is logged on standard error: debug, info, warn or error")
}

// config turns flags and environment into the server's configuration.
func (f *mcpFlags) config(set flagSet, log *slog.Logger) (mcp.Config, error) {
	cfg := mcp.Config{
		Version: version, NoLibraries: f.noLibraries, Languages: f.languages, WarmLanguages: f.warmLanguages,
		Warm: f.warm, MaxCalls: f.maxCalls, MaxSessions: f.maxSessions, Log: log,
	}
	if f.warm == 0 {
		cfg.Warm = -1 // zero is the default there
	}
	for name, n := range map[string]int{"warm": f.warm + 1, "max-calls": f.maxCalls, "max-sessions": f.maxSessions} {
		if n < 1 {
			return cfg, fmt.Errorf("--%s: the number is too small", name)
		}
	}
	if f.place.Engine.Container != "" {
		return cfg, errors.New("--container is for one sandbox, and a server has many: use --image")
	}
	if f.place.Pod.Pod != "" {
		return cfg, errors.New("--pod is for one sandbox, and a server has many: use --image or --pod-template")
	}
	if err := f.environment(set, log); err != nil {
		return cfg, err
	}
	if f.commit && !f.place.onEngine() {
		return cfg, fmt.Errorf("--commit is for container engines, and the backend is %s: add --backend docker or --backend podman", f.place.Backend)
	}
	var err error
	if cfg.Sandbox, err = f.options(false); err != nil {
		return cfg, err
	}
	if cfg.Sandbox.Policy, err = f.policy.options(); err != nil {
		return cfg, err
	}
	if cfg.Images, err = pairs("image-for", f.images); err != nil {
		return cfg, err
	}
	if cfg.Sandbox.Limits.Timeout, err = timeoutFlag(f.timeout); err != nil {
		return cfg, err
	}
	if cfg.Sandbox.Limits.Timeout == llmsandbox.Unlimited {
		return cfg, errors.New("--timeout unlimited: a server's calls need an end; use a duration such as 1h")
	}
	if cfg.SessionTTL, err = lifeFlag("session-ttl", f.ttl); err != nil {
		return cfg, err
	}
	if cfg.SessionIdle, err = lifeFlag("session-idle", f.idle); err != nil {
		return cfg, err
	}
	if f.commit {
		cfg.Commit = commitNew
	}
	return cfg, nil
}
