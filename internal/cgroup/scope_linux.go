package cgroup

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/godbus/dbus/v5"
)

// scopeTime bounds the wait for systemd.
const scopeTime = 5 * time.Second

const (
	systemdName = "org.freedesktop.systemd1"
	systemdPath = "/org/freedesktop/systemd1"
)

type property struct {
	Name  string
	Value dbus.Variant
}

// startScope asks the user's systemd for a scope around pid. Each sandbox has its
// own, around its agent: a shared scope with groups of ours in it would not do,
// because the kernel lets a user move a process (or clone one) into a
// group only when they own the nearest group above both, and a login session and
// user@UID.service have a directory of root's above them. systemd may do it for us,
// the caller is left where it is, and a scope goes by itself with its last process.
func (g *Group) startScope(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, scopeTime, fmt.Errorf("systemd did not answer within %v: %w", scopeTime, context.DeadlineExceeded))
	defer cancel()
	conn, err := dbus.Dial(fmt.Sprintf("unix:path=/run/user/%d/bus", os.Geteuid()), dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("reach the systemd user session: %w: run loginctl enable-linger", err)
	}
	defer conn.Close()
	if err := conn.Auth(nil); err != nil {
		return fmt.Errorf("reach the systemd user session: %w", err)
	}
	if err := conn.Hello(); err != nil {
		return fmt.Errorf("reach the systemd user session: %w", err)
	}
	if err := conn.AddMatchSignalContext(ctx, dbus.WithMatchInterface(systemdName+".Manager"), dbus.WithMatchMember("JobRemoved")); err != nil {
		return fmt.Errorf("follow systemd's jobs: %w", err)
	}
	signals := make(chan *dbus.Signal, 64)
	conn.Signal(signals)
	unit, job := g.unit(pid), dbus.ObjectPath("")
	manager := conn.Object(systemdName, systemdPath)
	if err := manager.CallWithContext(ctx, systemdName+".Manager.Subscribe", 0).Err; err != nil {
		return fmt.Errorf("follow systemd's jobs: %w", err)
	}
	aux := []struct {
		Name       string
		Properties []property
	}{}
	if err := manager.CallWithContext(ctx, systemdName+".Manager.StartTransientUnit", 0, unit, "fail", g.scopeProperties(pid), aux).Store(&job); err != nil {
		return fmt.Errorf("start the scope %s: %w", unit, err)
	}
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("start the scope %s: %w", unit, context.Cause(ctx))
		case sig, ok := <-signals:
			if !ok {
				return fmt.Errorf("start the scope %s: the connection to systemd broke", unit)
			}
			if len(sig.Body) != 4 || sig.Body[1] != job {
				continue
			}
			if sig.Body[3] != "done" {
				return fmt.Errorf("start the scope %s: systemd says %v", unit, sig.Body[3])
			}
			return g.enterScope(pid)
		}
	}
}

// unit names the scope after the sandbox and its first process, so that a sandbox
// of the same name can follow while systemd still tidies up after this one.
func (g *Group) unit(pid int) string { return fmt.Sprintf("%s-%s-%d.scope", dirName, g.name, pid) }

// enterScope finds the directory systemd made and makes sure the limits are in it.
func (g *Group) enterScope(pid int) error {
	own, err := readOwn(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return fmt.Errorf("find the scope: %w", err)
	}
	if filepath.Base(own[""]) != g.unit(pid) {
		return fmt.Errorf("pid %d is in the group %s, not in the scope %s", pid, own[""], g.unit(pid))
	}
	dir := g.s.v2.path(own[""])
	g.mu.Lock()
	g.dirs[""] = dir
	g.mu.Unlock()
	// Written again in the kernel's own format: systemd takes a property without
	// complaint also where the controller behind it is missing.
	return g.limitV2(dir, false)
}

func (g *Group) scopeProperties(pid int) []property {
	p := []property{
		{"Description", dbus.MakeVariant("LLM sandbox " + g.name)},
		{"PIDs", dbus.MakeVariant([]uint32{uint32(pid)})},
		// Also keeps systemd 253 and later from stopping the whole scope when the
		// kernel kills one program in it for memory.
		{"Delegate", dbus.MakeVariant(true)},
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
		{"MemoryAccounting", dbus.MakeVariant(true)},
		{"CPUAccounting", dbus.MakeVariant(true)},
		{"TasksAccounting", dbus.MakeVariant(true)},
	}
	if l := g.limits; l.Memory > 0 {
		p = append(p, property{"MemoryMax", dbus.MakeVariant(uint64(l.Memory))}, property{"MemorySwapMax", dbus.MakeVariant(uint64(0))})
	}
	if g.limits.CPUs > 0 {
		p = append(p, property{"CPUQuotaPerSecUSec", dbus.MakeVariant(uint64(math.Round(g.limits.CPUs * 1e6)))})
	}
	if g.limits.PIDs > 0 {
		p = append(p, property{"TasksMax", dbus.MakeVariant(uint64(g.limits.PIDs + g.limits.Reserve))})
	}
	return p
}
