package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/configdir"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
	"github.com/llmsandbox/llmsandbox/internal/limit"
)

// sandboxFlags are the flags of every command that opens a sandbox.
type sandboxFlags struct {
	lang         string
	declared     []string // files of --language-file
	image        string
	place        place
	memory       string
	cpus         string
	pids         string
	disk         string
	bestEffort   bool
	user         string
	writableRoot bool
	sudo         bool
	ownWorkdir   string
	keepFiles    bool
	gpus         string
	environment  string
	template     string
	imports      []string
	env          []string
	mounts       []string
	volumes      []string
	labels       []string
	libraries    libraryFlags
	network      []string
	secrets      secretFlags
	idle         string // of create and run
}

func (f *sandboxFlags) register(set *pflag.FlagSet) {
	f.registerSandbox(set)
	stderr.register(set)
}

// registerSandbox adds what says which sandbox it is.
func (f *sandboxFlags) registerSandbox(set *pflag.FlagSet) {
	f.registerContent(set, "`LANGUAGE` of the code (default: from the file, otherwise python)")
	registerLanguageFile(set, &f.declared)
	f.registerBounds(set)
}

// startingSandbox is shown until a sandbox is open.
const startingSandbox = "Starting the sandbox"

// registerContent adds what code finds in a sandbox.
func (f *sandboxFlags) registerContent(set *pflag.FlagSet, lang string) {
	set.StringVarP(&f.lang, "lang", "l", "", lang)
	f.libraries.register(set)
	set.StringVar(&f.environment, "environment", "", "use environment `NAME`, such as data-science, or a lock file")
}

// registerImports adds what is imported once for many programs, or while a person is not waiting yet.
func (f *sandboxFlags) registerImports(set *pflag.FlagSet) {
	set.StringSliceVar(&f.imports, "import", nil, "import `MODULE`, such as numpy,pandas, before the code runs (repeatable)")
}

// registerBounds adds what bounds a sandbox, whatever runs in it.
func (f *sandboxFlags) registerBounds(set *pflag.FlagSet) {
	set.StringVar(&f.template, "template", "", "use template `NAME` for what other flags do not set")
	f.registerShared(set)
	f.place.register(set)
	f.place.Engine.register(set)
	f.place.Pod.register(set)
	set.BoolVar(&f.bestEffort, "best-effort", false, "continue if this machine cannot enforce a limit that you set")
	set.BoolVar(&f.writableRoot, "writable-root", false, "let code write everywhere in the sandbox")
	set.BoolVar(&f.sudo, "sudo", false, "let code become root of the sandbox with sudo (local backend)")
	set.StringVar(&f.gpus, "gpus", "", "give code `GPUS` of the host: 'all', a number, or IDs such as 0,1 (Docker, Podman, Kubernetes)")
	set.StringVar(&f.user, "user", "", "run code as `USER` of the sandbox, such as root")
	set.StringArrayVar(&f.mounts, "mount", nil, "mount `HOST:SANDBOX` read-only, or as a copy with :cow (repeatable)")
	set.StringArrayVar(&f.volumes, "volume", nil, "mount volume `NAME:SANDBOX`, with :ro read-only (repeatable)")
	f.secrets.register(set)
	f.libraries.registerHow(set, "install-timeout")
	set.StringArrayVar(&f.labels, "label", nil, "attach a label to the sandbox: `NAME=VALUE` (repeatable)")
}

// registerShared adds what of a sandbox's bounds a template may have, too.
func (f *sandboxFlags) registerShared(set *pflag.FlagSet) {
	set.StringVar(&f.image, "image", "", "root filesystem: registry `IMAGE`, OCI directory or docker save tar")
	set.StringVar(&f.memory, "memory", "", "memory limit: `SIZE` such as 512m, or 'unlimited' (default 512m)")
	set.StringVar(&f.cpus, "cpus", "", "CPU limit: `NUMBER` such as 0.5, or 'unlimited' (default 1)")
	set.StringVar(&f.pids, "pids", "", "limit of processes and threads: `NUMBER`, or 'unlimited' (default 128)")
	set.StringVar(&f.disk, "disk", "", "limit of written data: `SIZE` such as 1g, or 'unlimited' (default 1g)")
	set.StringArrayVarP(&f.env, "env", "e", nil, "set environment variable `NAME=VALUE` (repeatable)")
	set.StringArrayVar(&f.network, "network", nil, networkUsage)
}

// options turns the flags into options, which also have what is in the template, saying which flag makes no
// sense. kept tells that the sandbox is to stay.
func (f *sandboxFlags) options(kept bool) (llmsandbox.Options, error) {
	o, err := f.given()
	if err != nil {
		return o, err
	}
	return f.complete(o, kept)
}

// complete adds to given options what is in the template, and the backend.
func (f *sandboxFlags) complete(o llmsandbox.Options, kept bool) (llmsandbox.Options, error) {
	o, err := withTemplate(o)
	if err != nil {
		return o, err
	}
	if err = f.checkKeepFiles(); err != nil {
		return o, err
	}
	if err = f.place.check(o.Image, kept); err != nil {
		if o.Image != f.image {
			err = fmt.Errorf("template %s, with --image %s: %w", f.template, o.Image, err)
		}
		return o, err
	}
	if has := machineMemory(); f.place.Backend == localName && has > 0 && o.Limits.Memory > has {
		stderr.note(fmt.Sprintf("llmsandbox: warning: --memory %s is more than this machine has, which is %s", cmp.Or(f.memory, flagSize(o.Limits.Memory)), bytesize.Format(has)))
	}
	if len(o.Secrets) > 0 && len(o.Network.Allow) == 0 && o.Network.Mode != llmsandbox.NetworkFull {
		s := o.Secrets[0]
		return o, fmt.Errorf("--secret %s: the sandbox has no network to use it on: add --network allow=%s", s.Name, strings.Join(s.Hosts, ","))
	}
	if o.Backend, err = f.place.open(); err != nil {
		return o, err
	}
	o.Limits.Timeout = cmp.Or(o.Limits.Timeout, backend.RunTimeout(o.Backend))
	return o, nil
}

// withTemplate names the flag in errors.
func withTemplate(o llmsandbox.Options) (llmsandbox.Options, error) {
	o, err := o.WithTemplate()
	if err != nil {
		err = fmt.Errorf("--template: %w", err)
	}
	return o, err
}

// given are the options of the flags alone, without a backend.
func (f *sandboxFlags) given() (llmsandbox.Options, error) {
	o := llmsandbox.Options{
		Template: f.template, Language: f.lang, Image: f.image, BestEffort: f.bestEffort, WritableRoot: f.writableRoot, User: f.user, Sudo: f.sudo, Workdir: f.ownWorkdir, KeepFiles: f.keepFiles, GPUs: f.gpus, Libraries: f.libraries.libraries, Environment: f.environment, Imports: f.imports,
	}
	err := cmp.Or(
		into(&o.Limits.Memory)(sizeFlag("memory", f.memory, limit.MinMemory)),
		into(&o.Limits.Disk)(sizeFlag("disk", f.disk, limit.MinDisk)),
		into(&o.Limits.CPUs)(cpusFlag(f.cpus)),
		into(&o.Limits.PIDs)(pidsFlag(f.pids)),
		into(&o.Env)(pairs("env", f.env)),
		into(&o.Mounts)(mountFlag(f.mounts)),
		into(&o.Volumes)(volumeFlag(f.volumes)),
		into(&o.Network)(networkFlag(f.network)),
		into(&o.Secrets)(f.secrets.options()),
		into(&o.Install)(f.libraries.options()),
		into(&o.IdleTimeout)(durationFlag("idle", f.idle)),
		into(&o.Labels)(pairs("label", f.labels)),
	)
	return o, err
}

// registerProgram adds the flags of commands that run one program.
func registerProgram(set *pflag.FlagSet, timeout, workdir *string, tty, raw *bool) {
	set.StringVar(timeout, "timeout", "", "time limit: `DURATION` such as 10s, or 'unlimited' (default 60s)")
	set.StringVarP(workdir, "workdir", "w", "", "working `DIRECTORY` in the sandbox (default /sandbox)")
	set.BoolVarP(tty, "tty", "t", false, "give the program a terminal, and no time limit by default")
	set.BoolVar(raw, "raw", false, "pass control sequences of the program to the terminal")
}

// registerOwnWorkdir adds the directory that a sandbox is opened with.
func (f *sandboxFlags) registerOwnWorkdir(set *pflag.FlagSet) {
	set.StringVarP(&f.ownWorkdir, "workdir", "w", "", "make `DIRECTORY` the working directory (default /sandbox)")
}

// registerKeepFiles adds what makes the working directory one of an existing container or pod.
func (f *sandboxFlags) registerKeepFiles(set *pflag.FlagSet) {
	set.BoolVar(&f.keepFiles, "keep-files", false, "work in --workdir of an existing container or pod, and keep its files")
}

// checkKeepFiles says what --keep-files lacks.
func (f *sandboxFlags) checkKeepFiles() error {
	switch {
	case !f.keepFiles:
		return nil
	case f.place.Engine.Container == "" && f.place.Pod.Pod == "":
		return errors.New("--keep-files is for existing containers and pods, as a sandbox's own files go with it: add --container or --pod, or copy files out with --out or cp")
	case f.ownWorkdir == "":
		return errors.New("--keep-files needs --workdir: name the directory of the container whose files are to stay")
	}
	return nil
}

// registerIdle adds what ends a sandbox that stays.
func (f *sandboxFlags) registerIdle(set *pflag.FlagSet) {
	set.StringVar(&f.idle, "idle", "", "end the sandbox when it is not used for this `DURATION`, such as 10m (default: never)")
}

func pairs(flag string, list []string) (map[string]string, error) {
	out := make(map[string]string, len(list))
	for _, kv := range list {
		name, value, err := pair(flag, kv)
		if err != nil {
			return nil, err
		}
		out[name] = value
	}
	return out, nil
}

// mountFlag reads the values of --mount. Paths of the host may be relative.
func mountFlag(values []string) ([]llmsandbox.Mount, error) {
	var all []llmsandbox.Mount
	for _, value := range values {
		m, err := hostmount.Parse(value)
		if err == nil {
			m.Source, err = filepath.Abs(m.Source)
		}
		if err != nil {
			return nil, fmt.Errorf("--mount %q: %w", value, err)
		}
		all = append(all, m)
	}
	return all, nil
}

func pair(flag, kv string) (name, value string, err error) {
	name, value, ok := strings.Cut(kv, "=")
	if !ok || name == "" {
		return "", "", fmt.Errorf("--%s %q: use NAME=VALUE", flag, kv)
	}
	return name, value, nil
}

// secretFlags name secrets. Their values are never shown, not in errors either.
type secretFlags struct {
	secrets []string
	files   []string
	bodies  []string
}

func (f *secretFlags) register(set *pflag.FlagSet) {
	set.StringArrayVar(&f.secrets, "secret", nil, "add secret `NAME@HOST` or NAME=VALUE@HOST to requests (repeatable)")
	set.StringArrayVar(&f.files, "secret-file", nil, "read secrets from `FILE`, one per line, to keep values off the command line (repeatable)")
	set.StringArrayVar(&f.bodies, "secret-in-body", nil, "also replace the secret `NAME` in request bodies (repeatable)")
}

// options reads the flags.
func (f *secretFlags) options() ([]llmsandbox.Secret, error) {
	var out []llmsandbox.Secret
	for _, text := range f.secrets {
		s, err := parseSecret(text)
		if err != nil {
			return nil, fmt.Errorf("--secret: %w", err)
		}
		out = append(out, s)
	}
	for _, name := range f.files {
		secrets, err := readSecrets(name)
		if err != nil {
			return nil, fmt.Errorf("--secret-file: %w", err)
		}
		out = append(out, secrets...)
	}
	for _, name := range f.bodies {
		i := slices.IndexFunc(out, func(s llmsandbox.Secret) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--secret-in-body %q: no secret of that name is given", name)
		}
		out[i].Body = true
	}
	return out, nil
}

var errSecretForm = errors.New("use NAME=VALUE@HOST, or NAME@HOST for a value of the environment; more hosts follow after commas")

// parseSecret reads one secret. The hosts follow the last @, since a value may have one.
func parseSecret(text string) (llmsandbox.Secret, error) {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return llmsandbox.Secret{}, errSecretForm
	}
	name, value, given := strings.Cut(text[:at], "=")
	if name == "" {
		return llmsandbox.Secret{}, errSecretForm
	}
	if !given {
		if value, given = os.LookupEnv(name); !given {
			return llmsandbox.Secret{}, fmt.Errorf("%q is not in the environment of this command: set it there, or use NAME=VALUE@HOST", name)
		}
	}
	s := llmsandbox.Secret{Name: name, Value: value}
	for host := range strings.SplitSeq(text[at+1:], ",") {
		if host = strings.TrimSpace(host); host != "" {
			s.Hosts = append(s.Hosts, host)
		}
	}
	if len(s.Hosts) == 0 {
		return llmsandbox.Secret{}, fmt.Errorf("%q: %w", name, errSecretForm)
	}
	return s, nil
}

// readSecrets reads a file of secrets: one a line, empty ones and those that begin
// with # left out.
func readSecrets(name string) (secrets []llmsandbox.Secret, err error) {
	err = eachLine(name, func(line string) error {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			return nil
		}
		s, err := parseSecret(line)
		secrets = append(secrets, s)
		return err
	})
	return secrets, err
}

// maxLines bounds a file that is read line by line, in bytes.
const maxLines = 1 << 20

// eachLine calls take with the lines of a file, and says at which one it fails.
func eachLine(name string, take func(line string) error) error {
	text, err := configdir.ReadFile(name, maxLines)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(string(text), "\n") {
		if err := take(line); err != nil {
			return fmt.Errorf("%s, line %d: %w", name, i+1, err)
		}
	}
	return nil
}
