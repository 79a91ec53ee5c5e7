//go:build linux

package guest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// An Entry is what a process of another sandbox needs to fork one into this sandbox, which is then restricted
// as all of its processes are. It goes with descriptors: those that are 0 to 4 in the process that is forked, where
// its parent writes its records, the Landlock ruleset if there is one, and the namespaces. Beside those of the agent, the time and
// cgroup namespaces are those of all other processes.
type Entry struct {
	Landlock   bool // there is one
	Namespaces int
	Seccomp    []byte
	UID, GID   uint32
	OwnUID     bool // the parent is uid 0, which is not the process's
	Dir        string
	Rlimits    []agentproto.Rlimit
}

// String is a dictionary of Python.
func (e Entry) String() string {
	var limits strings.Builder
	for _, r := range e.Rlimits {
		fmt.Fprintf(&limits, "(%d, %d),", r.Resource, r.Value)
	}
	return fmt.Sprintf(`{"landlock": %d, "namespaces": %d, "seccomp": "%x", "uid": %d, "gid": %d, "own_uid": %d, "dir": %+q, "rlimits": [%s]}`,
		number(e.Landlock), e.Namespaces, e.Seccomp, e.UID, e.GID, number(e.OwnUID), e.Dir, limits.String())
}

// An Adoption makes a process that is forked into this sandbox a zygote, as if the agent had started it.
type Adoption struct {
	Entry Entry
	// Descriptors go with it. They are the caller's to close.
	Descriptors []int

	process *process
	ends    *childEnds
}

// Adopt prepares an adoption of a process that will have that tag.
func (a *Agent) Adopt(tag string, namespaces []int) (*Adoption, error) {
	if err := a.admit(); err != nil {
		return nil, err
	}
	p := a.newProcess(&agentproto.StartRequest{Control: true, Forks: true, Rest: agentproto.RestAlways, Tag: tag})
	l := &launch{}
	ends, err := p.openStreams(l, nil)
	d := &Adoption{process: p, ends: ends}
	if err == nil {
		err = d.open(l, namespaces)
	}
	if err != nil {
		d.fail()
		return nil, err
	}
	d.Entry = Entry{
		Landlock: a.opts.UseLandlock, Namespaces: len(namespaces), Seccomp: a.opts.Seccomp,
		UID: a.opts.CodeUID, GID: a.opts.CodeGID, OwnUID: a.ownUID(), Dir: a.opts.Workdir, Rlimits: a.opts.Rlimits,
	}
	return d, nil
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (d *Adoption) open(l *launch, namespaces []int) error {
	status, err := d.process.openStatus()
	if err != nil {
		return err
	}
	*d.ends = append(*d.ends, status)
	a := d.process.agent
	d.Descriptors = []int{int(l.stdio[0]), int(l.stdio[1]), int(l.stdio[2]), int(l.control[0]), int(l.control[1]), status}
	if a.opts.UseLandlock {
		d.Descriptors = append(d.Descriptors, a.opts.Landlock)
	}
	d.Descriptors = append(d.Descriptors, namespaces...)
	return nil
}

func (d *Adoption) fail() {
	d.ends.close()
	d.process.closeStreams()
	d.process.agent.dismiss()
}

// adoptWait bounds the wait for the process.
const adoptWait = 10 * time.Second

// Wait returns when the process is there and has been found to be restricted. It gives up the descriptors. After
// an error the sandbox must end: what has come in may not be restricted.
func (d *Adoption) Wait() error {
	p := d.process
	d.ends.close()
	err := p.status.SetReadDeadline(time.Now().Add(adoptWait))
	if err == nil {
		err = d.meet()
	}
	if err != nil {
		d.fail()
		return err
	}
	p.running, p.started = true, time.Now()
	p.waited, _ = p.agent.proc.waited(p.subreaper)
	p.agent.preferToKill(p.pid)
	p.count(false)
	if p.agent.add(p) {
		go p.kill(agentproto.KilledByRequest)
	}
	p.start()
	return nil
}

// meet learns of the process and looks at it: its parent tells of it once it has given up its privileges.
func (d *Adoption) meet() error {
	p := d.process
	rec, err := readRecord(p.status)
	if err != nil {
		return fmt.Errorf("no process has come in: %w", err)
	}
	p.pid, p.subreaper = int(rec.arg), int(rec.value)
	if err := p.status.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	st, ok := p.agent.proc.stat(p.pid)
	if !ok || rec.kind != recStarted || st.ppid != p.subreaper {
		return fmt.Errorf("processes %d and %d have come in: %w", p.pid, p.subreaper, errNotRestricted)
	}
	status, err := p.agent.proc.of(p.pid, "status")
	if err != nil {
		return err
	}
	return checkRestricted(status, d.Entry)
}

var errNotRestricted = errors.New("it is not restricted as the processes of a sandbox are")

// checkRestricted reads the status file of a process.
func checkRestricted(status []byte, e Entry) error {
	const noCaps = "0000000000000000"
	uid, gid := uint64(e.UID), uint64(e.GID)
	want := map[string]string{
		"Uid": fmt.Sprint(uid, uid, uid, uid), "Gid": fmt.Sprint(gid, gid, gid, gid), "NoNewPrivs": "1", "Threads": "1",
		"CapInh": noCaps, "CapPrm": noCaps, "CapEff": noCaps, "CapAmb": noCaps,
	}
	if len(e.Seccomp) > 0 {
		want["Seccomp"] = "2"
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.Join(strings.Fields(value), " ")
		if expected, ok := want[name]; ok && value == expected {
			delete(want, name)
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("a process has come in whose %s in /proc are not those of a program: %w", strings.Join(slices.Sorted(maps.Keys(want)), ", "), errNotRestricted)
	}
	return nil
}
