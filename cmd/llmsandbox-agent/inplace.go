//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/guest"
	"github.com/llmsandbox/llmsandbox/internal/guest/forward"
	"github.com/llmsandbox/llmsandbox/internal/guest/landlock"
	"github.com/llmsandbox/llmsandbox/internal/guest/notify"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

// confineSelf restricts the agent of a sandbox that has no namespaces, and returns only with an error: what code can have the agent do, by
// links among its files, reaches nothing that code does not, but for /proc, to find processes, and terminals. The agent executes itself
// for that: Landlock restricts a thread and what it starts, and only threads of one domain may look into what another has started.
func confineSelf(f flags, plan *nsinit.Plan, text []byte, fds []int) error {
	if len(fds) != 1 {
		return fmt.Errorf("%d descriptors came with the plan, and it is one, the proxy's socket", len(fds))
	}
	proxy, err := forward.NewReserved(fds[0])
	if err != nil {
		return err
	}
	rules := rulesInPlace(plan.LandlockRead, plan.LandlockWrite, plan.LandlockSpecial)
	const self = "/proc/self/exe"
	rules.ReadExec = append(slices.Clone(rules.ReadExec), self)
	rules.Special = append(slices.Clone(rules.Special), "/proc", "/dev/ptmx", "/dev/pts")
	rules.Ports = []uint16{proxy.Port()} // to which it connects sockets for the code
	ruleset, err := landlock.NewRuleset(rules)
	if err != nil {
		return fmt.Errorf("make the agent's Landlock ruleset: %w", err)
	}
	memory, err := unix.MemfdCreate("plan", 0)
	if err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	file := os.NewFile(uintptr(memory), "plan")
	if _, err := file.WriteAt(text, 0); err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	for _, fd := range []int{f.listenFD, f.setupFD, fds[0]} {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return err
		}
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := landlock.Enter(ruleset); err != nil {
		return err
	}
	if plan.SetIDs {
		if err := nsinit.ReduceCapsInPlace(); err != nil {
			return err
		}
	}
	return fmt.Errorf("execute the agent again: %w", unix.Exec(self, append(os.Args, "--plan-fd", strconv.Itoa(memory), "--proxy-fd", strconv.Itoa(fds[0])), nil))
}

func rulesInPlace(read, write, special []string) landlock.Rules {
	return landlock.Rules{ReadExec: read, ReadWrite: write, Special: special, LimitTCP: true}
}

// confineInPlace has code of such a sandbox restricted further than the agent.
func confineInPlace(opts *guest.Options, f flags, config nsinit.Config) (err error) {
	if fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); !errors.Is(err, unix.EACCES) {
		unix.Close(fd)
		return fmt.Errorf("the agent is not confined: %w", errors.Join(err, errors.ErrUnsupported))
	}
	rules := rulesInPlace(config.LandlockRead, config.LandlockWrite, config.LandlockSpecial)
	// The thread that forks is in the domain of what it forks, and its uid is the code's where that is shared: each process that is started
	// is in a domain of its own then, out of which it cannot signal that thread, which would be the agent.
	rules.ScopeSignals = config.SharedUID
	opts.NewLandlock = func() (int, error) { return landlock.NewRuleset(rules) }
	opts.NoPIDNamespace = true
	if config.WatchMemory+config.WatchDisk > 0 {
		opts.Watch = &guest.Watch{Memory: config.WatchMemory, Disk: config.WatchDisk, Dirs: config.LandlockWrite}
	}
	unix.CloseOnExec(f.proxyFD)
	if opts.Reserved, err = forward.NewReserved(f.proxyFD); err != nil {
		return err
	}
	opts.SeccompTCP = config.SeccompTCP
	opts.Notify = notify.Options{Filter: config.Notify, Writable: config.LandlockWrite, Port: opts.Reserved.Port(), Connect: opts.Reserved.Connect}
	return nil
}
