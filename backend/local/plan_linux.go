package local

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

// stage is where the disk is mounted while the root is built; /proc covers it at the
// end, so that nothing of it is in reach but what was mounted elsewhere.
const stage = "/proc"

// diskDescriptor is the disk's key among descriptors.
const diskDescriptor = -1

// planInput is what a plan is made from.
type planInput struct {
	mounts   []mount
	identity identity
	diskSize int64  // of a tmpfs; 0: no limit
	empty    string // an empty directory of the host
	// descriptors are the numbers of those that are sent with the plan: of the disk, and by
	// its place in mounts what a bind shows, or the first of what an overlay has as its lower directories.
	descriptors map[int]uint32
	// detached reports whether they can be mounted themselves. Otherwise they only show what
	// the source of a mount must still be.
	detached bool
	workdir  string
	startDir string
	sudo     bool
	seccomp  []byte
	entering []byte
	tag      string
	rlimits  []nsinit.Rlimit
	timens   bool
}

// makePlan says how the agent makes the mounts, by system calls.
func makePlan(in planInput) nsinit.Plan {
	p := planner{planInput: in, made: map[string]bool{}}
	for i, m := range in.mounts {
		p.seal(m.target)
		if m.target == "/" && m.kind == mountOverlay && !m.readOnly {
			p.writableRoot(i, m)
			continue
		}
		p.add(i, m)
	}
	p.seal("")
	return nsinit.Plan{
		Hostname: "sandbox", Workdir: in.workdir, SetIDs: in.identity.separate, OwnUsers: in.identity.users != 0, Sudo: in.sudo, CodeUID: in.identity.insideUID, CodeGID: in.identity.insideGID, StartDir: in.startDir,
		LandlockRead: []string{"/"}, LandlockWrite: writable(in.mounts), LandlockSpecial: []string{"/dev", "/proc"}, Seccomp: in.seccomp, Rlimits: in.rlimits, HideUptime: in.timens, Entering: in.entering, Adopt: in.tag, Steps: p.steps,
	}
}

// A planner turns mounts into steps.
type planner struct {
	planInput
	steps    []nsinit.Step
	made     map[string]bool // directories that are known to be there
	open     []string        // mounts that become read-only once what is below them is in place, outermost first
	staged   bool
	overlays int
}

// attributes of a mount; a tmpfs is written to before it becomes read-only.
func (m *mount) attributes() uint32 {
	attr := uint32(unix.MOUNT_ATTR_NOSUID)
	if !m.devices {
		attr |= unix.MOUNT_ATTR_NODEV
	}
	if m.noExec {
		attr |= unix.MOUNT_ATTR_NOEXEC
	}
	if m.readOnly && m.kind != mountTmpfs {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	return attr
}

func (p *planner) step(s nsinit.Step) { p.steps = append(p.steps, s) }

// seal makes read-only what is complete when next comes.
func (p *planner) seal(next string) {
	for n := len(p.open) - 1; n >= 0 && !below(next, p.open[n]); n-- {
		p.step(nsinit.Step{Op: nsinit.OpAttr, Path: p.open[n], Attr: unix.MOUNT_ATTR_RDONLY})
		p.open = p.open[:n]
	}
}

// owner is who a mount belongs to, as the agent calls them.
func (p *planner) owner(m mount) (uid, gid uint32) {
	switch id := p.identity; {
	case !m.code:
		return 0, 0
	case m.root && id.users != 0:
		return id.toAgent(0), id.toAgent(0)
	default:
		return id.toAgent(id.insideUID), id.toAgent(id.insideGID)
	}
}

// mkdir makes a directory that belongs to whom the mount does.
func (p *planner) mkdir(path string, mode uint32, of mount) {
	if path == "/" || p.made[path] {
		return
	}
	p.made[path] = true
	s := nsinit.Step{Op: nsinit.OpMkdir, Path: path, Mode: mode}
	s.UID, s.GID = p.owner(of)
	p.step(s)
}

// mountPoint makes the directory that is mounted on. Those above it are the code's where
// others beside them are.
func (p *planner) mountPoint(m mount) {
	of := mount{code: below(m.target, tempDir) || below(m.target, p.workdir)}
	if m.file {
		p.mkdir(filepath.Dir(m.target), 0o755, of)
		p.step(nsinit.Step{Op: nsinit.OpFile, Path: m.target, Mode: 0o444, Optional: true})
		return
	}
	p.mkdir(m.target, 0o755, of)
	maps.DeleteFunc(p.made, func(path string, _ bool) bool { return below(path, m.target) }) // it hides them
}

func (p *planner) add(i int, m mount) {
	attr := m.attributes()
	switch m.kind {
	case mountTmpfs:
		p.mountPoint(m)
		p.step(nsinit.Step{Op: nsinit.OpFilesystem, Source: "tmpfs", Path: m.target, Attr: attr, Options: tmpfsOptions(m.mode, m.size, m.inodes)})
		if m.readOnly {
			p.open = append(p.open, m.target)
		}
	case mountProc:
		p.step(nsinit.Step{Op: nsinit.OpFilesystem, Source: "proc", Path: m.target, Attr: attr})
	case mountDevpts:
		p.mountPoint(m)
		p.step(nsinit.Step{Op: nsinit.OpFilesystem, Source: "devpts", Path: m.target, Attr: attr, Options: []string{"newinstance", "ptmxmode=0666", "mode=620"}})
	case mountBind:
		p.mountPoint(m)
		p.bind(i, m, attr)
	case mountVolume:
		p.mountPoint(m)
		p.sent(p.descriptors[i], m.source, m.target, attr)
		if m.unowned && p.identity.separate && !p.detached {
			p.ownDirectories(m)
		}
	case mountOverlay:
		if m.readOnly {
			p.step(nsinit.Step{Op: nsinit.OpUnion, Path: m.target, Options: m.lower, Attr: attr})
		} else {
			p.mountPoint(m)
			upper := p.overlay(i, m, attr)
			if m.root {
				p.step(nsinit.Step{Op: nsinit.OpLayer, Path: m.target, Source: upper})
			}
		}
	case mountDisk:
		p.mountPoint(m)
		p.stageDisk()
		p.mkdir(stage+"/"+m.source, m.mode, m)
		p.step(nsinit.Step{Op: nsinit.OpInner, Source: stage + "/" + m.source, Path: m.target})
	case mountDevice:
		p.step(nsinit.Step{Op: nsinit.OpFile, Path: m.target, Mode: 0o666})
		p.step(nsinit.Step{Op: nsinit.OpBind, Source: m.target, Path: m.target, Attr: attr})
	case makeFile:
		p.step(nsinit.Step{Op: nsinit.OpFile, Path: m.target, Mode: m.mode, Data: m.data})
	case makeDirectory:
		p.mkdir(m.target, m.mode, m)
	case makeSymlink:
		p.step(nsinit.Step{Op: nsinit.OpSymlink, Path: m.target, Source: m.source})
	case maskFile:
		p.step(nsinit.Step{Op: nsinit.OpInner, Source: "/dev/null", Path: m.target, Attr: unix.MOUNT_ATTR_RDONLY, Optional: true})
	case setReadOnly:
		p.step(nsinit.Step{Op: nsinit.OpInner, Source: m.target, Path: m.target, Attr: attr, Optional: true})
	case maskDirectory:
		p.step(nsinit.Step{Op: nsinit.OpFilesystem, Source: "tmpfs", Path: m.target, Attr: attr, Options: []string{"mode=555", "size=4k", "nr_inodes=1"}, Optional: true})
	}
}

func tmpfsOptions(mode uint32, size, inodes int64) []string {
	options := []string{fmt.Sprintf("mode=%o", mode)}
	if size > 0 {
		options = append(options, "size="+strconv.FormatInt(size, 10), "nr_inodes="+strconv.FormatInt(inodes, 10))
	}
	return options
}

// stageDisk mounts the disk, once. Everything writable of a sandbox is a directory of this
// one file system with one limit.
func (p *planner) stageDisk() {
	if p.staged {
		return
	}
	p.staged = true
	p.mkdir(stage, 0o555, mount{})
	if fd, ok := p.descriptors[diskDescriptor]; ok {
		p.step(nsinit.Step{Op: nsinit.OpReceived, Path: stage, FD: fd})
		return
	}
	// As many files as an ext4 of that size would hold, and never so few that an ordinary
	// program notices.
	inodes := max(p.diskSize/(16<<10), 1024)
	p.step(nsinit.Step{Op: nsinit.OpFilesystem, Source: "tmpfs", Path: stage, Attr: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
		Options: tmpfsOptions(0o755, p.diskSize, inodes)})
}

// bind mounts a host directory. Where the mount table would show a path of the host that
// is not seen inside anyway, such as one below a user's home, it is hidden. That costs
// half a millisecond, which root's own cache directory is not worth: it is called the
// same everywhere. A mount of the caller's shows what changes on the host, as no overlay does.
func (p *planner) bind(i int, m mount, attr uint32) {
	if fd, sent := p.descriptors[i]; sent {
		p.sent(fd, m.source, m.target, attr)
		return
	}
	s := nsinit.Step{Op: nsinit.OpBind, Source: m.source, Path: m.target, Attr: attr}
	if m.source != m.target && !below(m.source, layerstore.RootDir) {
		s.Op, s.Options = nsinit.OpBindHidden, []string{p.empty}
	}
	p.step(s)
}

// sent mounts at path what source is or was opened as.
func (p *planner) sent(fd uint32, source, path string, attr uint32) {
	s := nsinit.Step{Op: nsinit.OpReceived, Path: path, FD: fd}
	if !p.detached {
		s.Op, s.Source, s.Attr = nsinit.OpBindSame, source, attr
	}
	p.step(s)
}

// writableRoot mounts a root with a layer of the disk above it. That needs the disk, which needs a root: a first one, which
// the other replaces.
func (p *planner) writableRoot(i int, m mount) {
	const first = "/root"
	p.step(nsinit.Step{Op: nsinit.OpFilesystem, Source: "tmpfs", Path: "/", Attr: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Options: tmpfsOptions(0o755, 64<<10, 16)})
	m.target = first
	p.mountPoint(m)
	upper := p.overlay(i, m, m.attributes())
	p.step(nsinit.Step{Op: nsinit.OpRoot, Path: first, Source: stage})
	p.step(nsinit.Step{Op: nsinit.OpLayer, Path: "/", Source: upper})
	delete(p.made, first)
}

// overlay mounts directories of the host with a private layer of the disk above them, which it returns.
func (p *planner) overlay(i int, m mount, attr uint32) (upper string) {
	base := fmt.Sprintf("%s/%d", stage, p.overlays)
	p.overlays++
	upper, work := base+"/upper", base+"/work"
	p.stageDisk()
	p.mkdir(upper, 0o755, m)
	p.mkdir(work, 0o700, mount{})
	options := []string{upper, work}
	for n, source := range m.lower {
		lower := base + "/" + strconv.Itoa(n)
		options = append(options, lower)
		p.mkdir(lower, 0o755, mount{})
		if fd, sent := p.descriptors[i]; sent {
			p.sent(fd+uint32(n), source, lower, attr|unix.MOUNT_ATTR_RDONLY)
		} else {
			p.step(nsinit.Step{Op: nsinit.OpBind, Source: source, Path: lower, Attr: attr | unix.MOUNT_ATTR_RDONLY})
		}
	}
	p.step(nsinit.Step{Op: nsinit.OpOverlay, Path: m.target, Options: options, Attr: attr})
	if p.identity.separate && !p.detached {
		// An ordinary user cannot have the layer's files mapped to the code's user.
		// With the directories its own, the code can replace files, if not change them.
		p.ownDirectories(m)
	}
	return upper
}

// ownDirectories gives the directories of a mount to whom it belongs.
func (p *planner) ownDirectories(m mount) {
	s := nsinit.Step{Op: nsinit.OpOwnDirectories, Path: m.target, Optional: m.kind == mountOverlay && m.opened != nil}
	s.UID, s.GID = p.owner(m)
	p.step(s)
}

// addMountPoints puts a directory of mount points, made at dir, on top of a root that
// nothing can be made in. On top, because what an image has at these paths may be a link.
func addMountPoints(dir string, mounts []mount) ([]mount, error) {
	if mounts[0].kind != mountOverlay { // a root of the host that cannot be written to is one that they can be made in
		return mounts, nil
	}
	var targets []string
	for _, m := range mounts[1:] {
		inside := func(target string) bool { return below(m.target, target) }
		if slices.ContainsFunc(targets, inside) {
			continue
		}
		targets = append(targets, m.target)
		point := filepath.Join(dir, m.target)
		if m.file {
			point = filepath.Dir(point)
		}
		err := os.MkdirAll(point, 0o755)
		if err == nil && m.file {
			err = os.WriteFile(filepath.Join(dir, m.target), nil, 0o444)
		}
		if err != nil {
			return nil, fmt.Errorf("mount points: %w", err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, fmt.Errorf("mount points: %w", err)
	}
	mounts[0].lower = append([]string{dir}, mounts[0].lower...)
	return mounts, nil
}
