package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Group is the control group of one sandbox. It is safe for concurrent use.
type Group struct {
	s             *Support
	name          string
	limits        Limits
	swapUnlimited bool

	mu   sync.Mutex
	dirs map[string]string // controller to directory; version 2 has one, under ""
	oom  *os.File          // kept open: read around each run
	gone bool
}

// Name is the name given to Create.
func (g *Group) Name() string { return g.name }

// dir of a controller; on version 2 that is always the same directory.
func (g *Group) dir(controller string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d := g.dirs[""]; d != "" {
		return d
	}
	return g.dirs[controller]
}

// errNoGroup: nothing here counts that.
var errNoGroup = errors.New("no control group counts it here")

// Usage reports what the group uses; what no controller counts is marked unknown.
func (g *Group) Usage() (backend.Usage, error) {
	var u backend.Usage
	now, peak, stat := "memory.usage_in_bytes", "memory.max_usage_in_bytes", "cpuacct.usage"
	if g.s.Version == V2 {
		now, peak, stat = "memory.current", "memory.peak", "cpu.stat"
	}
	if d := g.dir("memory"); d != "" && g.s.Usable("memory") {
		n, err := readInt(d, now)
		if err != nil {
			return u, err
		}
		u.MemoryKnown, u.Memory, u.MemoryPeak = true, n, n
		// memory.peak came with Linux 5.19; before it the peak is not known.
		if p, err := readInt(d, peak); err == nil {
			u.MemoryPeak = p
		} else if !errors.Is(err, unix.ENOENT) {
			return u, err
		}
	}
	d := g.dir("cpuacct")
	switch {
	case d == "":
	case g.s.Version == V2:
		data, err := os.ReadFile(filepath.Join(d, stat))
		if err != nil {
			return u, err
		}
		n, err := field(data, "usage_usec")
		if err != nil {
			return u, err
		}
		u.CPUKnown, u.CPU = true, time.Duration(n)*time.Microsecond
	default:
		n, err := readInt(d, stat)
		if err != nil {
			return u, err
		}
		u.CPUKnown, u.CPU = true, time.Duration(n)
	}
	return u, nil
}

// OOMKills is how many processes of the group the kernel has killed for memory.
// It keeps its file open and costs one system call.
func (g *Group) OOMKills() (int64, error) {
	d := g.dir("memory")
	if d == "" || !g.s.Usable("memory") {
		return 0, fmt.Errorf("kills for memory: %w", errNoGroup)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		return 0, fmt.Errorf("kills for memory: the group is removed: %w", os.ErrClosed)
	}
	if g.oom == nil {
		file := "memory.oom_control"
		if g.s.Version == V2 {
			file = "memory.events"
		}
		f, err := os.Open(filepath.Join(d, file))
		if err != nil {
			return 0, err
		}
		g.oom = f
	}
	var buf [512]byte
	n, err := unix.Pread(int(g.oom.Fd()), buf[:], 0)
	if err != nil {
		return 0, fmt.Errorf("kills for memory: %w", err)
	}
	return field(buf[:n], "oom_kill")
}

func readInt(dir, file string) (int64, error) {
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return n, nil
}

// field finds the number of a "name number" line.
func field(data []byte, name string) (int64, error) {
	for line := range bytes.Lines(data) {
		if k, v, ok := bytes.Cut(bytes.TrimSpace(line), []byte(" ")); ok && string(k) == name {
			return strconv.ParseInt(string(v), 10, 64)
		}
	}
	return 0, fmt.Errorf("no line %q: the kernel is too old to count it", name)
}
