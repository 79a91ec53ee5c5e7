//go:build linux

package main

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest"
)

// serve serves streams on stdin and stdout, on a unix socket, or both, until a
// client shuts the agent down, or it ends by itself.
func serve(f flags) error {
	// First of all: code of the same uid could look into this process.
	if err := guest.Harden(); err != nil {
		return err
	}
	opts, err := f.options()
	if err != nil {
		return err
	}
	var token []byte
	listener := -1
	if f.listen != "" {
		if token, err = readToken(f); err != nil {
			return err
		}
		if listener, err = listen(f.listen); err != nil {
			return err
		}
	}
	var stdio *duplex
	if f.stdio {
		if stdio, err = takeStdio(); err != nil {
			return err
		}
	}
	agent, err := guest.New(opts)
	if err != nil {
		return err
	}
	defer agent.Shutdown()
	users := newUsers(f, func(d time.Duration, do func()) stopper { return agent.After(d, do) })
	failed := make(chan error, 1)
	if listener >= 0 {
		auth := newAuthenticator(token)
		go func() {
			failed <- agent.ServeListener(listener, func(conn *os.File) (func(), error) {
				if err := auth.authenticate(conn); err != nil {
					return nil, err
				}
				return users.enter(), nil
			})
		}()
	}
	if stdio != nil {
		leave := users.enter()
		go func() {
			defer leave()
			// The client sees why its own stream ended.
			_ = agent.ServeConn(stdio, 0)
		}()
	}
	select {
	case <-agent.Quit():
		return nil
	case <-users.alone:
		return endError(agentproto.EndAlone)
	case why := <-agent.Over():
		return endError(why)
	case err := <-failed:
		return err
	}
}

// options are the agent's options by the flags.
func (f *flags) options() (guest.Options, error) {
	opts := guest.Options{
		CodeUID:     uint32(unix.Geteuid()),
		CodeGID:     uint32(unix.Getegid()),
		Workdir:     f.workdir,
		Rlimits:     f.rlimits,
		OOMScoreAdj: codeOOMScoreAdj,
		CountOOM:    true,
		Deadline:    f.deadline,
		Idle:        f.idle,
		Prepare:     f.plant,
	}
	if f.uid >= 0 {
		opts.CodeUID = uint32(f.uid)
	}
	if f.gid >= 0 {
		opts.CodeGID = uint32(f.gid)
	}
	var err error
	if opts.Seccomp, err = readFilter(f.seccomp); err != nil {
		return opts, err
	}
	return opts, addFiles(&opts)
}

// plant makes the trees of links.
func (f *flags) plant() error {
	for _, p := range f.seeds {
		if err := p.Plant(); err != nil {
			return err
		}
	}
	return nil
}

// codeOOMScoreAdj makes the kernel kill code rather than the agent when memory is
// short.
const codeOOMScoreAdj = 500
