package backendtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// A Config says what is tested, and what it declares to be without.
type Config struct {
	// Backend is tested. It sees no other sandboxes than those of the suite: it has
	// its own state directory, label or other mark of an owner.
	Backend backend.Backend
	// Image returns the image for a language; nil means no image, which is the
	// backend's default. An image has the language's programs, and sh, true, false, echo,
	// cat, tr, wc, cp, rm, mkfifo, nohup and sleep.
	Image func(language string) string
	// Options, when set, changes the options of each sandbox before it is opened.
	Options func(*llmsandbox.Options)
	// Open, when set, opens the sandboxes of most cases, in place of llmsandbox.Open.
	Open func(context.Context, *llmsandbox.Options) (*llmsandbox.Sandbox, error)
	// Release, when set, gives up what Open keeps between sandboxes.
	Release func(*testing.T)
	// Address is what another process gets to reach the same backend: the function
	// given to [Child] gets it. See [Child].
	Address string
	// Starts is how many sandboxes are started at the same time at most where a case opens
	// dozens; 0 means all of them. The processors bound it where each start keeps one busy
	// for a second, as that of a kernel of its own does: the last would have waited longer
	// than the case gives each.
	Starts int
	// Outside looks at the sandboxes by other means than the backend's. A backend
	// whose sandboxes cannot be seen from here lacks [SeenFromOutside].
	Outside Outside
	// Lacks says what the backend or its images are without, and why. A case that
	// needs it is skipped with that reason. What is missing and not declared here is
	// a failure when LLMSANDBOX_REQUIRE=1 is set, and a skip otherwise. Controls that
	// are not enforced are not declared here: Capabilities reports them.
	Lacks map[Feature]string
	// Without says which cases do not hold, and why: they do not run.
	Without map[string]string
	// Only are the names of the cases that run; none means all.
	Only []string
}

// A Feature is what some cases need: one of the constants, or the name of a language.
type Feature string

const (
	// SeenFromOutside: there is a [Config.Outside].
	SeenFromOutside Feature = "seen-from-outside"
	// OtherProcesses: a second process can open sandboxes of its own and attach to those
	// of the first, see [Child].
	OtherProcesses Feature = "other-processes"
	// NoHostPaths: the mount table inside names no directory of the host. An engine that
	// mounts its layers by name lacks it.
	NoHostPaths Feature = "no-host-paths"
	// OnlyLoopback: the sandbox has no network interface but its loopback. One that has an
	// interface which leads nowhere lacks it.
	OnlyLoopback Feature = "only-loopback"
	// OOMAlone: a program that takes all the memory there is dies alone. Where all of the
	// sandbox may go with it, the loss is reported with its reason.
	OOMAlone Feature = "oom-alone"
	// ReadOnlyRoot: code can write to its working directory and to directories for temporary files only.
	ReadOnlyRoot Feature = "read-only-root"
	// NotRoot: code is not root in its sandbox.
	NotRoot Feature = "not-root"
	// UsersApart: root of a sandbox has neither the agent's uid nor that of the image's files.
	UsersApart Feature = "users-apart"
	// KernelFiles: what the kernel tells only the machine's root is hidden from that of a sandbox.
	KernelFiles Feature = "kernel-files"
	// FreshInterpreters: a new sandbox runs no interpreter. One that imports modules ahead does.
	FreshInterpreters Feature = "fresh-interpreters"
	// LinuxKernel: the kernel inside is Linux. What another one keeps to itself, such as how
	// readily a process is killed for memory, is no setting of the machine.
	LinuxKernel Feature = "linux-kernel"
	// Science: python has numpy, pandas and matplotlib, and r has ggplot2.
	Science Feature = "science"
	// IPv6Loopback: the sandbox's loopback has ::1.
	IPv6Loopback Feature = "ipv6-loopback"
	// Servers: code may listen, on ports of its loopback and on unix sockets.
	Servers Feature = "servers"
	// SharedMemory: code can make shared memory by name, in /dev/shm.
	SharedMemory Feature = "shared-memory"
	// PreparedCaches: sandboxes get the layers of backend.Spec, such as the compiled
	// standard library of Go.
	PreparedCaches Feature = "prepared-caches"
	// Libraries: the backend has layers, and its images have pip.
	Libraries Feature = "libraries"
	// Registries: the configured package registries may be asked for real packages.
	Registries Feature = "registries"
	// Mounts: directories and files of this machine can be mounted into sandboxes.
	Mounts Feature = "mounts"
	// CopyOnWriteMounts: code can write to them without changing them.
	CopyOnWriteMounts Feature = "copy-on-write-mounts"
	// Volumes: files stay in volumes, see [backend.Volumes].
	Volumes Feature = "volumes"
)

// Marker is in the command line of every program that the suite leaves running in the
// background, followed by the sandbox's id. A test process has one of its own, which the
// processes that it starts share: suites of other backends may run beside it.
var Marker = "llmsandbox-conformance-" + rand.Text() + "-"

// Outside looks at sandboxes from outside, by means that the backend has no part in:
// the process table, control groups, an engine's own commands.
type Outside interface {
	// Processes returns what runs in a sandbox, its agent included; nothing of one that
	// is gone, or that has no owner any more.
	Processes(ctx context.Context, id string) ([]Process, error)
	// Kill ends the first process of a sandbox, as the kernel or an operator may.
	Kill(ctx context.Context, id string) error
	// Left returns all that can be found of any sandbox of this backend: processes with
	// [Marker], mounts, containers, control groups, directories. It is called when none
	// is open.
	Left(ctx context.Context) ([]string, error)
}

// A Process of a sandbox, as seen from outside.
type Process struct {
	PID      int // on the machine it runs on
	Command  string
	Resident int64 // bytes of memory; 0 where that is not known
}

// check finds mistakes in a Config that would hide cases.
func (c Config) check() error {
	if c.Backend == nil {
		return fmt.Errorf("backendtest: Config.Backend is nil: set the backend to test")
	}
	known := []Feature{SeenFromOutside, OtherProcesses, NoHostPaths, OnlyLoopback, OOMAlone, LinuxKernel, Science, IPv6Loopback, Servers, SharedMemory, PreparedCaches, Libraries, Registries, Mounts, CopyOnWriteMounts, Volumes, FreshInterpreters, ReadOnlyRoot, NotRoot, UsersApart, KernelFiles}
	for language := range hellos {
		known = append(known, Feature(language))
	}
	for _, name := range slices.AppendSeq(slices.Clone(c.Only), maps.Keys(c.Without)) {
		if !slices.ContainsFunc(cases, func(k testCase) bool { return k.name == name }) {
			return fmt.Errorf("backendtest: Config.Only or Config.Without has %q, which is no case", name)
		}
	}
	for feature, reason := range c.Lacks {
		if !slices.Contains(known, feature) {
			return fmt.Errorf("backendtest: Config.Lacks has %q, which no case needs: use one of %q", feature, known)
		}
		if reason == "" {
			return fmt.Errorf("backendtest: Config.Lacks has %q without a reason", feature)
		}
	}
	for name, reason := range c.Without {
		if reason == "" {
			return fmt.Errorf("backendtest: Config.Without has %q without a reason", name)
		}
	}
	_, blind := c.Lacks[SeenFromOutside]
	if blind == (c.Outside != nil) {
		return fmt.Errorf("backendtest: set either Config.Outside, or Config.Lacks[SeenFromOutside] to the reason why there is none")
	}
	return nil
}
