package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

// The labels of everything that is made on an engine. What is secret is not in them.
const (
	labelID       = "llmsandbox.id"       // of a sandbox
	labelRole     = "llmsandbox.role"     // "sandbox", "fill", "agent", "layer", "volume", "deadline"
	labelOwner    = "llmsandbox.owner"    // see owner
	labelLanguage = "llmsandbox.language" //
	labelImage    = "llmsandbox.image"    // its name as resolved
	labelCreated  = "llmsandbox.created"  // RFC 3339
	labelDeadline = "llmsandbox.deadline" // RFC 3339; none: not set. See also moved
	labelIdle     = "llmsandbox.idle"     // a duration; none: not set
	labelLimits   = "llmsandbox.limits"   // JSON of backend.Limits
	labelLabels   = "llmsandbox.labels"   // JSON, the caller's own
	labelEnforced = "llmsandbox.enforced" // JSON of backend.Capabilities
)

const (
	roleSandbox = "sandbox"
	roleFill    = "fill"
)

// encode turns a sandbox's description into labels.
func encode(info backend.Info) (map[string]string, error) {
	limits, err := json.Marshal(info.Limits)
	if err != nil {
		return nil, fmt.Errorf("limits as a label: %w", err)
	}
	own, err := json.Marshal(info.Labels)
	if err != nil {
		return nil, fmt.Errorf("labels as a label: %w", err)
	}
	l := map[string]string{
		labelID: info.ID, labelRole: roleSandbox, labelOwner: thisProcess().String(),
		labelLanguage: info.Language, labelImage: info.Image,
		labelCreated: info.Created.Format(time.RFC3339Nano), labelLimits: string(limits), labelLabels: string(own),
	}
	if !info.Deadline.IsZero() {
		l[labelDeadline] = info.Deadline.Format(time.RFC3339Nano)
	}
	if info.IdleTimeout > 0 {
		l[labelIdle] = info.IdleTimeout.String()
	}
	if len(info.Volumes) > 0 {
		volumes, err := json.Marshal(info.Volumes)
		if err != nil {
			return nil, fmt.Errorf("volumes as a label: %w", err)
		}
		l[labelVolumes] = string(volumes)
	}
	return l, nil
}

// decode is encode's reverse. Labels of other programs may be anything.
func decode(name string, l map[string]string) (backend.Info, error) {
	info := backend.Info{ID: l[labelID], Backend: name, Language: l[labelLanguage], Image: l[labelImage]}
	if info.ID == "" {
		return info, fmt.Errorf("the container has no label %s", labelID)
	}
	var err error
	if info.Created, err = time.Parse(time.RFC3339Nano, l[labelCreated]); err != nil {
		return info, fmt.Errorf("label %s: %w", labelCreated, err)
	}
	if d := l[labelDeadline]; d != "" {
		if info.Deadline, err = time.Parse(time.RFC3339Nano, d); err != nil {
			return info, fmt.Errorf("label %s: %w", labelDeadline, err)
		}
	}
	if d := l[labelIdle]; d != "" {
		if info.IdleTimeout, err = time.ParseDuration(d); err != nil {
			return info, fmt.Errorf("label %s: %w", labelIdle, err)
		}
	}
	if err := json.Unmarshal([]byte(l[labelLimits]), &info.Limits); err != nil {
		return info, fmt.Errorf("label %s: %w", labelLimits, err)
	}
	if err := json.Unmarshal([]byte(l[labelLabels]), &info.Labels); err != nil {
		return info, fmt.Errorf("label %s: %w", labelLabels, err)
	}
	if v := l[labelVolumes]; v != "" {
		if err := json.Unmarshal([]byte(v), &info.Volumes); err != nil {
			return info, fmt.Errorf("label %s: %w", labelVolumes, err)
		}
	}
	info.Owner = "unknown"
	if o, err := parseOwner(l[labelOwner]); err == nil {
		info.Owner = o.describe()
	}
	return info, nil
}

// An owner identifies a process beyond the reuse of its pid: the machine's boot, the
// pid namespace, the pid and when it started.
type owner struct {
	boot, namespace string
	pid             int
	start           uint64
}

// String is what the owner label holds.
func (o owner) String() string {
	return strings.Join([]string{o.boot, o.namespace, strconv.Itoa(o.pid), strconv.FormatUint(o.start, 10)}, "/")
}

// describe names an owner for people.
func (o owner) describe() string { return "pid " + strconv.Itoa(o.pid) }

func parseOwner(s string) (owner, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 4 {
		return owner{}, fmt.Errorf("owner %q is not of four parts", s)
	}
	pid, err := strconv.Atoi(parts[2])
	if err != nil {
		return owner{}, fmt.Errorf("owner %q: %w", s, err)
	}
	start, err := strconv.ParseUint(parts[3], 10, 64)
	if err != nil {
		return owner{}, fmt.Errorf("owner %q: %w", s, err)
	}
	return owner{boot: parts[0], namespace: parts[1], pid: pid, start: start}, nil
}

// dead reports whether it is certain that the owner no longer lives. About a process of
// another machine or another pid namespace nothing is certain.
func (o owner) dead() bool {
	self := thisProcess()
	if self.boot == "" || o.boot == "" {
		return false
	}
	if o.boot != self.boot {
		// The same machine after a restart looks like another one.
		return false
	}
	if o.namespace != self.namespace {
		return false
	}
	start, err := startTime(o.pid)
	return os.IsNotExist(err) || err == nil && start != o.start
}

// thisProcess is this process. Without /proc nothing is known of it but its pid: then no
// owner is taken for dead, and sandboxes end by themselves when their stream does.
var thisProcess = sync.OnceValue(func() owner {
	o := owner{pid: os.Getpid()}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return owner{pid: o.pid}
	}
	if o.namespace, err = os.Readlink("/proc/self/ns/pid"); err != nil {
		return owner{pid: o.pid}
	}
	if o.start, err = startTime(o.pid); err != nil {
		return owner{pid: o.pid}
	}
	o.boot = strings.TrimSpace(string(boot))
	return o
})

// startTime is when a process started, in clock ticks since boot.
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold anything.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	const startField = 19 // of those after the name
	if len(fields) <= startField {
		return 0, fmt.Errorf("process %d: its status is not understood", pid)
	}
	return strconv.ParseUint(string(fields[startField]), 10, 64)
}
