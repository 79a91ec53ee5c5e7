//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest/seed"
)

// flags are the options of the agent's command line.
type flags struct {
	stdio             bool   // --stdio: serve a stream on stdin and stdout
	listen            string // --listen ADDRESS: serve streams on a unix socket
	listenFD, setupFD int    // --listen-fd N, --setup-fd N: of the local backend
	planFD            int    // --plan-fd N: of an agent that has confined itself and executed itself again
	proxyFD           int    // --proxy-fd N: the same one's socket for the proxy of its code
	entranceFD        int    // --entrance-fd N: of a sandbox of the local backend whose processes enter others

	// Where the secret is that each client of the address must send first.
	tokenFD  int    // --token-fd N
	tokenEnv string // --token-env NAME

	grace int // --grace SECONDS: end when no client was connected so long; -1: not given
	// --first-grace SECONDS: wait so long for the first connection, if that is longer
	firstGrace int
	deadline   time.Time     // --deadline UNIXMILLIS: end at that time; zero: not given
	idle       time.Duration // --idle MILLIS: end when nothing went on so long; 0: never
	uid, gid   int           // --uid N, --gid N: what code runs as; -1: as the agent
	users      bool          // --users: code that is root keeps its power over files, users and processes
	workdir    string        // --workdir DIR: where commands start
	seccomp    string        // --seccomp FILE: the filter of every process, an array of struct sock_filter
	rlimits    []agentproto.Rlimit
	seeds      []seed.Pair
}

// parseFlags reads the command line. --rlimit RESOURCE=VALUE, which holds for every
// process, and --seed SOURCE=TARGET, which makes TARGET a writable tree of links to the
// files of SOURCE, may be repeated.
func parseFlags(args []string) (flags, error) {
	f := flags{listenFD: -1, setupFD: -1, planFD: -1, proxyFD: -1, entranceFD: -1, tokenFD: -1, grace: -1, uid: -1, gid: -1}
	set := map[string]func(string) error{
		"--listen":      text(&f.listen),
		"--listen-fd":   number(&f.listenFD),
		"--setup-fd":    number(&f.setupFD),
		"--plan-fd":     number(&f.planFD),
		"--proxy-fd":    number(&f.proxyFD),
		"--entrance-fd": number(&f.entranceFD),
		"--token-fd":    number(&f.tokenFD),
		"--token-env":   text(&f.tokenEnv),
		"--grace":       number(&f.grace),
		"--first-grace": number(&f.firstGrace),
		"--deadline":    f.setDeadline,
		"--idle":        f.setIdle,
		"--uid":         number(&f.uid),
		"--gid":         number(&f.gid),
		"--workdir":     text(&f.workdir),
		"--seccomp":     text(&f.seccomp),
		"--rlimit":      f.addRlimit,
		"--seed":        f.addSeed,
	}
	for len(args) > 0 {
		name := args[0]
		args = args[1:]
		if name == "--stdio" || name == "--users" {
			f.stdio, f.users = f.stdio || name == "--stdio", f.users || name == "--users"
			continue
		}
		setter := set[name]
		if setter == nil {
			return f, fmt.Errorf("unknown flag %q", name)
		}
		if len(args) == 0 {
			return f, fmt.Errorf("flag %s needs a value", name)
		}
		if err := setter(args[0]); err != nil {
			return f, fmt.Errorf("flag %s: %q: %w", name, args[0], err)
		}
		args = args[1:]
	}
	return f, f.check()
}

func text(to *string) func(string) error {
	return func(s string) error {
		*to = s
		return nil
	}
}

func number(to *int) func(string) error {
	return func(s string) error {
		n, err := strconv.ParseUint(s, 10, 31)
		if err != nil {
			return errors.New("not a number from 0 to 2147483647")
		}
		*to = int(n)
		return nil
	}
}

func (f *flags) setDeadline(s string) error {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil || ms <= 0 {
		return errors.New("not a time in milliseconds since 1970")
	}
	f.deadline = time.UnixMilli(ms)
	return nil
}

func (f *flags) setIdle(s string) error {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil || ms <= 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return errors.New("not a duration in milliseconds")
	}
	f.idle = time.Duration(ms) * time.Millisecond
	return nil
}

func (f *flags) addRlimit(s string) error {
	r, err := parseRlimit(s)
	f.rlimits = append(f.rlimits, r)
	return err
}

func (f *flags) addSeed(s string) error {
	p, err := seed.Parse(s)
	f.seeds = append(f.seeds, p)
	return err
}

// check refuses what does not go together.
func (f *flags) check() error {
	token := f.tokenFD >= 0 || f.tokenEnv != ""
	switch {
	case (f.setupFD >= 0) != (f.listenFD >= 0):
		return errors.New("--setup-fd and --listen-fd go together")
	case f.setupFD < 0 && !f.stdio && f.listen == "":
		return errors.New("nothing to serve: give --stdio or --listen")
	case token && f.listen == "":
		return errors.New("--token-fd and --token-env go with --listen")
	case f.tokenFD >= 0 && f.tokenEnv != "":
		return errors.New("give --token-fd or --token-env, not both")
	case f.firstGrace > 0 && (f.grace < 0 || f.stdio):
		return errors.New("--first-grace goes with --grace, and not with --stdio, whose stream is there first")
	case abstract(f.listen) && !token:
		return errors.New("--listen @NAME needs a token: no file system keeps others from connecting to it")
	}
	return nil
}

// rlimitNames are the resources by the names that engines use.
var rlimitNames = map[string]uint32{
	"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA,
	"fsize": unix.RLIMIT_FSIZE, "memlock": unix.RLIMIT_MEMLOCK, "nofile": unix.RLIMIT_NOFILE,
	"nproc": unix.RLIMIT_NPROC, "stack": unix.RLIMIT_STACK,
}

// maxRlimit is the kernel's largest number of a resource.
const maxRlimit = 15

// parseRlimit parses RESOURCE=VALUE: a name or number, and a number or "unlimited".
func parseRlimit(s string) (agentproto.Rlimit, error) {
	name, value, ok := strings.Cut(s, "=")
	if !ok {
		return agentproto.Rlimit{}, errors.New("not of the form RESOURCE=VALUE")
	}
	resource, known := rlimitNames[name]
	if !known {
		n, err := strconv.ParseUint(name, 10, 32)
		if err != nil || n > maxRlimit {
			return agentproto.Rlimit{}, errors.New("the resource is neither a number from 0 to 15 nor one of as, core, cpu, data, fsize, memlock, nofile, nproc, stack")
		}
		resource = uint32(n)
	}
	if value == "unlimited" {
		return agentproto.Rlimit{Resource: resource, Value: math.MaxUint64}, nil
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return agentproto.Rlimit{}, errors.New(`the value is neither a number nor "unlimited"`)
	}
	return agentproto.Rlimit{Resource: resource, Value: n}, nil
}

// users counts the connections, and reports when there has been none for the grace
// time.
type users struct {
	grace time.Duration
	never bool
	alone chan struct{}
	after func(time.Duration, func()) stopper

	mu    sync.Mutex
	count int
	timer stopper
}

// A stopper is a timer that can be stopped.
type stopper interface{ Stop() bool }

// newUsers: without --grace an agent that listens waits for clients for ever, and
// one that only has stdin and stdout ends with them. The first client may take longer.
func newUsers(f flags, after func(time.Duration, func()) stopper) *users {
	u := &users{after: after, grace: time.Duration(max(f.grace, 0)) * time.Second, alone: make(chan struct{})}
	u.never = f.grace < 0 && f.listen != ""
	if !u.never && !f.stdio {
		u.wait(max(u.grace, time.Duration(f.firstGrace)*time.Second))
	}
	return u
}

// wait has the agent end after that time, unless a client connects.
func (u *users) wait(grace time.Duration) {
	u.timer = u.after(grace, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		select {
		case <-u.alone:
		default:
			if u.count == 0 {
				close(u.alone)
			}
		}
	})
}

// enter counts a connection until leave is called.
func (u *users) enter() (leave func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count++
	if u.timer != nil {
		u.timer.Stop()
	}
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.count--; u.count > 0 || u.never {
			return
		}
		u.wait(u.grace)
	}
}
