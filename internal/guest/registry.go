//go:build linux

package guest

import (
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// admit counts a process that is about to start.
func (a *Agent) admit() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return agentproto.Errorf(agentproto.CodeBusy, "the agent is shutting down")
	}
	if a.live >= a.opts.MaxProcesses {
		return agentproto.Errorf(agentproto.CodeBusy, "%d processes run already, which is the agent's limit: wait for some to end", a.live)
	}
	a.live++
	return nil
}

func (a *Agent) dismiss() {
	a.mu.Lock()
	a.live--
	a.mu.Unlock()
}

// add makes a started process known. It reports whether the agent is shutting down.
func (a *Agent) add(p *process) (down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastID++
	p.id = a.lastID
	a.processes[p.id] = p
	return a.down
}

func (a *Agent) find(id uint64) (*process, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.processes[id]; p != nil {
		return p, nil
	}
	if id == 0 || id > a.lastID {
		return nil, agentproto.Errorf(agentproto.CodeNotFound, "this agent has started no process %d: it may have been restarted", id)
	}
	return nil, agentproto.Errorf(agentproto.CodeLost, "process %d has ended, and its result was collected or is too old to be kept", id)
}

// ended is called when nothing of a process is left.
func (a *Agent) ended(p *process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live--
	p.over = true
	if p.counts {
		a.idle.leave()
	}
	if p.collected {
		delete(a.processes, p.id)
		return
	}
	a.endedIDs = append(a.endedIDs, p.id)
	if len(a.endedIDs) > maxEnded {
		oldest := a.processes[a.endedIDs[0]]
		a.endedIDs = a.endedIDs[1:]
		delete(a.processes, oldest.id)
		go oldest.abandon()
	}
}

// collect forgets a process whose Exit has reached the client, once nothing of it
// is left.
func (a *Agent) collect(p *process) {
	p.abandon()
	a.mu.Lock()
	defer a.mu.Unlock()
	p.collected = true
	if !p.over {
		return
	}
	delete(a.processes, p.id)
	if i := slices.Index(a.endedIDs, p.id); i >= 0 {
		a.endedIDs = slices.Delete(a.endedIDs, i, i+1)
	}
}

// list describes the processes whose Exit has not been collected, and those that
// have left something running.
func (a *Agent) list() *agentproto.ProcessList {
	a.mu.Lock()
	all := make([]*process, 0, len(a.processes))
	for _, p := range a.processes {
		all = append(all, p)
	}
	a.mu.Unlock()
	slices.SortFunc(all, func(x, y *process) int { return int(x.id) - int(y.id) })
	list := &agentproto.ProcessList{}
	for _, p := range all {
		list.Processes = append(list.Processes, p.info())
	}
	return list
}

func (a *Agent) serveCount(call *agentproto.Call) error {
	n, err := a.proc.others()
	if err != nil {
		return agentproto.Errorf(agentproto.CodeInternal, "count the processes: %v", err)
	}
	return call.End(&agentproto.ProcessCount{Processes: uint64(n)})
}

func (p *process) info() agentproto.ProcessInfo {
	info := agentproto.ProcessInfo{
		ID:          p.id,
		PID:         uint32(p.pid),
		Tag:         p.req.Tag,
		Argv:        p.req.Argv,
		StartMillis: uint64(p.started.UnixMilli()),
		Running:     p.isRunning(),
		Attached:    p.attached(),
	}
	info.OutStart, info.OutEnd = p.outputs[0].bounds()
	info.ErrStart, info.ErrEnd = p.outputs[1].bounds()
	select {
	case <-p.gone:
		info.CPUMicros = p.finalCPU()
	default:
		info.CPUMicros, info.RSS = p.agent.proc.treeUsage(p.subreaper)
	}
	return info
}
