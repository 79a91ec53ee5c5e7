//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest"
	"github.com/llmsandbox/llmsandbox/internal/guest/files"
	"github.com/llmsandbox/llmsandbox/internal/guest/landlock"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

// serveLocal is the mode of the local backend: the agent is pid 1 of new namespaces, or in none,
// sets them up as the host tells it over one socket, and serves another one that the
// host has made. It ends when its owner does.
func serveLocal(f flags) error {
	unix.CloseOnExec(f.setupFD)
	unix.CloseOnExec(f.listenFD)
	config, err := nsinit.Setup(f.setupFD, f.planFD, func(plan *nsinit.Plan, text []byte, fds []int) error {
		return confineSelf(f, plan, text, fds)
	})
	if err != nil {
		return err
	}
	opts := guest.Options{
		CodeUID:         config.CodeUID,
		CodeGID:         config.CodeGID,
		OwnUsers:        config.OwnUsers,
		Sudo:            config.Sudo,
		Workdir:         config.Workdir,
		Seccomp:         config.Seccomp,
		OOMScoreAdj:     codeOOMScoreAdj,
		OnSpawnerThread: config.OnSpawnerThread,
		Deadline:        f.deadline,
		Idle:            f.idle,
	}
	if f.entranceFD >= 0 {
		unix.CloseOnExec(f.entranceFD)
		opts.Entrance = &guest.Entrance{Socket: f.entranceFD, Seccomp: config.Entering}
	}
	for _, r := range config.Rlimits {
		opts.Rlimits = append(opts.Rlimits, agentproto.Rlimit{Resource: r.Resource, Value: r.Value})
	}
	if config.Process {
		err = confineInPlace(&opts, f, config)
	} else {
		err = confine(&opts, config)
	}
	if err != nil {
		return err
	}
	if err := addFiles(&opts, config.Layers); err != nil {
		return err
	}
	agent, err := guest.New(opts)
	if err != nil {
		return err
	}
	alone := make(chan struct{})
	go func() {
		awaitOwner(f.setupFD)
		if !config.Process {
			os.Exit(0) // and with it ends everything in its pid namespace
		}
		close(alone)
	}()
	if config.Process {
		defer agent.Shutdown()
	}
	if config.Adopt != "" {
		if err := adopt(f.setupFD, agent, config); err != nil {
			return err
		}
	}
	failed := make(chan error, 1)
	go func() { failed <- agent.ServeListener(f.listenFD, nil) }()
	select {
	case <-agent.Quit():
		return nil
	case <-alone:
		return nil
	case why := <-agent.Over():
		return endError(why)
	case err := <-failed:
		return err
	}
}

// confine makes the Landlock ruleset, where the kernel has Landlock and it was
// asked for.
func confine(opts *guest.Options, config nsinit.Config) error {
	if len(config.LandlockRead)+len(config.LandlockWrite) == 0 {
		return nil
	}
	rules := landlock.Rules{
		ReadExec:     config.LandlockRead,
		ReadWrite:    config.LandlockWrite,
		Special:      config.LandlockSpecial,
		ScopeSignals: config.SharedUID,
	}
	if config.Proc == nsinit.ProcClosed {
		if err := closeProc(&rules); err != nil {
			return fmt.Errorf("close /proc with Landlock: %w", err)
		}
	}
	fd, err := landlock.NewRuleset(rules)
	if errors.Is(err, landlock.ErrUnsupported) && config.Proc != nsinit.ProcClosed {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the Landlock ruleset: %w", err)
	}
	opts.Landlock, opts.UseLandlock = fd, true
	return nil
}

// closeProc lets code read everything but /proc, and of that only what tells of no process.
func closeProc(rules *landlock.Rules) (err error) {
	if rules.ReadExec, err = nsinit.BesidesProc(); err != nil {
		return err
	}
	rules.List, rules.ReadOnly, rules.Special = []string{"/"}, nsinit.Readable, []string{"/dev"}
	for _, path := range slices.Concat(rules.ReadExec, rules.ReadOnly) {
		// A rule is about an inode. A file system of the kernel that forgets one, as it may while nothing has it open, makes another.
		if _, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0); err != nil && err != unix.ENOENT {
			return err
		}
	}
	return nil
}

// adopt sends the owner what a process of another sandbox needs to come in, and tells it when one has.
func adopt(fd int, agent *guest.Agent, config nsinit.Config) error {
	adoption, err := agent.Adopt(config.Adopt, *config.Namespaces)
	if err == nil {
		err = sendEntry(fd, adoption)
	}
	if err == nil {
		err = adoption.Wait()
	}
	for _, fd := range *config.Namespaces {
		unix.Close(fd)
	}
	if err != nil {
		return fmt.Errorf("take in a process of another sandbox: %w", err)
	}
	_, err = unix.Write(fd, []byte{0})
	return err
}

func sendEntry(fd int, adoption *guest.Adoption) error {
	return unix.Sendmsg(fd, []byte(adoption.Entry.String()), unix.UnixRights(adoption.Descriptors...), nil, unix.MSG_NOSIGNAL)
}

// awaitOwner returns when the other end of the set-up socket is closed: its owner has died, or lets go of the sandbox.
func awaitOwner(fd int) {
	var b [1]byte
	for {
		n, err := unix.Read(fd, b[:])
		if err != unix.EINTR && n <= 0 {
			return
		}
	}
}

// addFiles gives the agent the service of files.
func addFiles(opts *guest.Options, layers map[string]int) error {
	service, err := files.New(files.Options{Workdir: opts.Workdir, Layers: layers})
	opts.Files = service
	return err
}
