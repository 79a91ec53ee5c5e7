//go:build linux

package files

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

const (
	// maxWatches bounds the directories one call watches; beyond it the client gets a report
	// of an overflow.
	maxWatches = 4096
	watchMask  = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
		unix.IN_ATTRIB | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK
)

func (s *Service) serveWatch(call *job) error {
	var req agentproto.WatchRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := s.absolute(req.Path)
	if err != nil {
		return err
	}
	top, err := s.open(p, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return pathError("watch", req.Path, err)
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		unix.Close(top)
		return pathError("watch", req.Path, err)
	}
	w := watcher{service: s, call: call, in: os.NewFile(uintptr(fd), "inotify"), fd: fd, recursive: req.Recursive, directories: map[int32]string{}}
	defer w.in.Close()
	p = strings.TrimRight(p, "/")
	err = w.add(top, p, 0, false)
	if err == nil {
		err = call.Send(&agentproto.Empty{})
	}
	if err == nil && w.full {
		err = w.send(agentproto.OpOverflow, p, true)
	}
	if err != nil {
		return pathError("watch", req.Path, err)
	}
	return w.run()
}

// watcher is one call's watch.
type watcher struct {
	service     *Service
	call        *job
	in          *os.File
	fd          int
	recursive   bool
	directories map[int32]string
	full        bool
}

// add watches an open directory, which it closes, and those below it. With report,
// what they hold already is reported as created.
func (w *watcher) add(fd int, path string, depth int, report bool) error {
	dir := os.NewFile(uintptr(fd), path)
	defer dir.Close()
	if len(w.directories) >= maxWatches || depth > maxTarDepth {
		w.full = true
		return nil
	}
	wd, err := unix.InotifyAddWatch(w.fd, fdPath(fd), watchMask)
	if err == unix.ENOSPC && depth > 0 {
		w.full = true
		return nil
	}
	if err != nil {
		return err
	}
	w.directories[int32(wd)] = path
	if !w.recursive {
		return nil
	}
	for {
		w.call.turns.yield()
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			sub, openErr := openat2(fd, name, dirFlags, 0, beneath)
			if report {
				if err := w.send(agentproto.OpCreate, path+"/"+name, openErr == nil); err != nil {
					if openErr == nil {
						unix.Close(sub)
					}
					return err
				}
			}
			if openErr != nil {
				continue // not a directory, or gone
			}
			if err := w.add(sub, path+"/"+name, depth+1, report); err != nil {
				return err
			}
		}
		if err != nil {
			return nil // the end, or the directory was removed, which an event reports
		}
	}
}

func (w *watcher) send(op agentproto.WatchOp, path string, dir bool) error {
	if path == "" {
		path = "/"
	}
	return w.call.Send(&agentproto.WatchEvent{Op: op, Path: path, Dir: dir})
}

// run reports events until the call is cancelled.
func (w *watcher) run() error {
	ended := make(chan struct{})
	var stopper sync.WaitGroup
	stopper.Go(func() {
		select {
		case <-w.call.Done():
		case <-ended:
		}
		w.in.Close() // ends the Read below
	})
	defer stopper.Wait()
	defer close(ended)
	buf := make([]byte, 64<<10)
	for {
		n, err := w.wait(buf)
		if err != nil {
			return agentproto.Errorf(agentproto.CodeCancelled, "the watch has ended: %v", err)
		}
		for p := buf[:n]; len(p) >= unix.SizeofInotifyEvent; {
			wd := int32(binary.NativeEndian.Uint32(p))
			mask := binary.NativeEndian.Uint32(p[4:])
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(p[12:]))
			name, _, _ := bytes.Cut(p[unix.SizeofInotifyEvent:size], []byte{0})
			if err := w.event(wd, mask, string(name)); err != nil {
				return err
			}
			p = p[size:]
		}
	}
}

// wait waits for events and reads them.
func (w *watcher) wait(buf []byte) (int, error) {
	defer w.call.away()()
	return w.in.Read(buf)
}

func (w *watcher) event(wd int32, mask uint32, name string) error {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		return w.call.Send(&agentproto.WatchEvent{Op: agentproto.OpOverflow})
	}
	path, ok := w.directories[wd]
	if mask&unix.IN_IGNORED != 0 {
		delete(w.directories, wd)
		if len(w.directories) == 0 {
			return agentproto.Errorf(agentproto.CodeNotFound, "the watch has ended: the directory is gone")
		}
		return nil
	}
	if !ok {
		return nil
	}
	if name != "" {
		path += "/" + name
	}
	dir := mask&unix.IN_ISDIR != 0
	var op agentproto.WatchOp
	switch {
	case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		op = agentproto.OpCreate
	case mask&unix.IN_MODIFY != 0:
		op = agentproto.OpWrite
	case mask&unix.IN_DELETE != 0:
		op = agentproto.OpRemove
	case mask&unix.IN_MOVED_FROM != 0:
		op = agentproto.OpRename
	case mask&unix.IN_ATTRIB != 0:
		op = agentproto.OpChmod
	default:
		return nil
	}
	if op == agentproto.OpRename && dir {
		w.forget(path)
	}
	if err := w.send(op, path, dir); err != nil {
		return err
	}
	if op != agentproto.OpCreate || !dir || !w.recursive {
		return nil
	}
	fd, err := w.service.open(path, dirFlags, 0)
	if err != nil {
		return nil // removed again, which another event reports
	}
	wasFull := w.full
	if err := w.add(fd, path, 0, true); err != nil {
		return err
	}
	if w.full && !wasFull {
		return w.send(agentproto.OpOverflow, path, true)
	}
	return nil
}

// forget ends the watch of a directory that has moved away, and of those below it. Where
// it has come to is reported as created, and watched, when that is in the tree.
func (w *watcher) forget(moved string) {
	for wd, path := range w.directories {
		if path == moved || strings.HasPrefix(path, moved+"/") {
			// Fails when the directory is gone, and the watch with it.
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd))
			delete(w.directories, wd)
		}
	}
}
