//go:build linux

package files

import (
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// Bounds of one listing, so that it stays well below a message's limit.
const (
	maxListed    = 20000
	maxListBytes = 4 << 20
)

func (s *Service) serveStat(call *job) error {
	var req agentproto.PathRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := s.absolute(req.Path)
	if err != nil {
		return err
	}
	fd, err := s.open(p, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return pathError("stat", req.Path, err)
	}
	defer unix.Close(fd)
	info, err := infoAt(fd, "")
	if err != nil {
		return pathError("stat", req.Path, err)
	}
	info.Name = path.Base(p)
	return call.End(info)
}

// infoAt describes a directory's entry, or with an empty name the descriptor itself.
func infoAt(dir int, name string) (*agentproto.FileInfo, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH); err != nil {
		return nil, err
	}
	info := fileInfo(name, &st)
	if info.Type == agentproto.TypeSymlink {
		buf := make([]byte, maxPath)
		n, err := unix.Readlinkat(dir, name, buf)
		// Exchanged since: then it is no link any more and has no target.
		if err == nil {
			info.Link = string(buf[:n])
		}
	}
	return info, nil
}

func fileInfo(name string, st *unix.Stat_t) *agentproto.FileInfo {
	info := &agentproto.FileInfo{
		Name: name, Type: agentproto.TypeOther, Mode: st.Mode & 0o7777, Size: uint64(st.Size),
		MTimeMicros: st.Mtim.Nano() / 1000, UID: st.Uid, GID: st.Gid,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		info.Type = agentproto.TypeRegular
	case unix.S_IFDIR:
		info.Type = agentproto.TypeDir
	case unix.S_IFLNK:
		info.Type = agentproto.TypeSymlink
	}
	return info
}

func (s *Service) serveList(call *job) error {
	var req agentproto.PathRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := s.absolute(req.Path)
	if err != nil {
		return err
	}
	fd, err := s.open(p, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return pathError("list", req.Path, err)
	}
	dir := os.NewFile(uintptr(fd), p)
	defer dir.Close()
	var list agentproto.FileList
	found := map[string]agentproto.FileInfo{}
	for size := 0; ; {
		call.turns.yield()
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			info, err := infoAt(fd, name)
			if err == unix.ENOENT {
				continue // removed meanwhile
			}
			if err != nil {
				return pathError("list", req.Path, err)
			}
			if size += len(info.Name) + len(info.Link) + 64; size > maxListBytes || len(found) >= maxListed {
				list.Truncated = true
				break
			}
			found[name] = *info
		}
		if err == io.EOF || list.Truncated {
			break
		}
		if err != nil {
			return pathError("list", req.Path, err)
		}
	}
	// To sort the names, and not the structs, makes the agent 16 KiB smaller.
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list.Files = append(list.Files, found[name])
	}
	return call.End(&list)
}

func (s *Service) serveMkdir(call *job) error {
	var req agentproto.MkdirRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := s.absolute(req.Path)
	if err != nil {
		return err
	}
	mode := req.Mode & 0o777
	if mode == 0 {
		mode = 0o755
	}
	if req.Parents {
		err = s.mkdirAll(p, mode)
	} else {
		err = s.mkdir(p, mode)
	}
	if err != nil {
		return pathError("make directory", req.Path, err)
	}
	return call.End(&agentproto.Empty{})
}

func (s *Service) serveRename(call *job) error {
	var req agentproto.RenameRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	from, err := s.absolute(req.From)
	if err != nil {
		return err
	}
	to, err := s.absolute(req.To)
	if err != nil {
		return err
	}
	fromDir, fromBase, err := s.parent(from)
	if err != nil {
		return pathError("rename", req.From, err)
	}
	defer unix.Close(fromDir)
	toDir, toBase, err := s.parent(to)
	if err != nil {
		return pathError("rename to", req.To, err)
	}
	defer unix.Close(toDir)
	if err := unix.Renameat(fromDir, fromBase, toDir, toBase); err != nil {
		return pathError("rename", req.From, err)
	}
	return call.End(&agentproto.Empty{})
}

func (s *Service) serveChmod(call *job) error {
	var req agentproto.ChmodRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := s.absolute(req.Path)
	if err != nil {
		return err
	}
	fd, err := s.open(p, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return pathError("chmod", req.Path, err)
	}
	defer unix.Close(fd)
	if err := chmod(fd, req.Mode&0o777); err != nil {
		return pathError("chmod", req.Path, err)
	}
	return call.End(&agentproto.Empty{})
}

// chmod sets the mode of what an O_PATH descriptor refers to, which fchmod refuses.
func chmod(fd int, mode uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ELOOP
	}
	if err := mayServe(fd); err != nil {
		return err
	}
	return unix.Chmod(fdPath(fd), mode)
}

func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
