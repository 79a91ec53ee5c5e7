//go:build linux

// Package notify answers system calls of code that shares its uid with others outside of the sandbox, and is in no
// namespaces of its own. Landlock decides on neither: changes of a file's mode, owner and times, which such code could
// make to every file of that user; and the address of a connection, of which it compares the port.
//
// A filter has the kernel hand these calls over, and nothing of them is ever left to the kernel to carry out, since the
// code can change what their arguments point to at any time. They are copied once, and a path is resolved once, to a
// descriptor. Whether that is beneath a directory that the code may write to is asked of the descriptor, and what was
// asked for is done to it.
package notify

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Options tell what is let through.
type Options struct {
	// Filter has the calls handed over: a raw array of struct sock_filter. Empty: none are.
	Filter []byte
	// Writable are the directories beneath which attributes may be changed, and of which too.
	Writable []string
	// Port may be connected to at 127.0.0.1, by Connect, which makes a socket of a family that is and does not block. Nothing else
	// may be connected to; and nothing at all where Connect is nil.
	Port    uint16
	Connect func(family int) (socket int, err error)
}

// A Handler answers calls.
type Handler struct {
	proc      int   // /proc
	roots     []int // of Options.Writable
	port      uint16
	connectTo func(family int) (int, error)

	uid, gid uint32
}

// New makes a handler, with a descriptor of /proc.
func New(o Options, proc int) (*Handler, error) {
	h := &Handler{proc: proc, port: o.Port, connectTo: o.Connect, uid: uint32(unix.Geteuid()), gid: uint32(unix.Getegid())}
	for _, dir := range o.Writable {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: dir, Err: err}
		}
		h.roots = append(h.roots, fd)
	}
	return h, nil
}

// Serve answers what comes over a descriptor of Listen. One call is handled at a time; who makes more waits for itself.
// It returns when the descriptor fails: the kernel lets all calls fail with ENOSYS once that is closed.
func (h *Handler) Serve(listener int) error {
	if err := unix.SetNonblock(listener, true); err != nil {
		return err
	}
	file := os.NewFile(uintptr(listener), "seccomp")
	defer file.Close()
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	for {
		// Receiving waits, also on a descriptor that does not block.
		if err := raw.Read(readable); err != nil {
			return err
		}
		var n notification
		if err := n.receive(listener); err != nil {
			if err == unix.ENOENT || err == unix.EINTR {
				continue // who called has been killed
			}
			return err
		}
		c := call{Handler: h, notification: n, listener: listener}
		c.answer(c.handle())
	}
}

func readable(fd uintptr) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		if err != unix.EINTR {
			return err != nil || n > 0
		}
	}
}

// A call is one that is being handled.
type call struct {
	*Handler
	notification
	listener int
	task     int // its directory in /proc
}

func (c *call) handle() error {
	// The directory is the thread's and no later one's with its number: the thread is still waiting after it was opened.
	task, err := unix.Openat(c.proc, strconv.Itoa(int(c.pid)), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return unix.EPERM
	}
	defer unix.Close(task)
	if err := c.valid(c.listener); err != nil {
		return err
	}
	c.task = task
	return c.carryOut()
}

func (c *call) carryOut() error {
	if c.nr == unix.SYS_CONNECT {
		return c.connect()
	}
	change, err := c.change()
	if err != nil {
		return err
	}
	fd, err := c.open(change)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !c.inside(fd) {
		return unix.EPERM
	}
	return change.apply(c.Handler, fd)
}

// inside reports whether a file is beneath one of the directories or is one: the kernel tells the path of the file that a
// descriptor is of, wherever it has been moved to. Nothing from outside gets inside: Landlock keeps the code from moving and linking it there.
func (h *Handler) inside(fd int) bool {
	name, err := h.name(fd)
	if err != nil {
		return false
	}
	for _, root := range h.roots {
		dir, err := h.name(root)
		if err == nil && (name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")) {
			return true
		}
	}
	return false
}

func (h *Handler) name(fd int) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(h.proc, own(fd), buf)
	if err != nil || n == len(buf) || n == 0 || buf[0] != '/' {
		return "", unix.EPERM
	}
	return string(buf[:n]), nil
}

// own is the path below /proc of a descriptor of this process, which leads to the file itself, also where that is a link.
func own(fd int) string { return "self/fd/" + strconv.Itoa(fd) }

// open opens the file that a change is about, as the caller would find it.
func (c *call) open(ch change) (int, error) {
	if ch.isFD {
		return c.dir(ch.dir)
	}
	path, err := c.text(ch.path)
	if err != nil {
		return -1, err
	}
	if path == "" && !ch.emptyPath {
		return -1, unix.ENOENT
	}
	if n, ok := descriptor(path); ok && !ch.noFollow {
		ch.dir, path = n, ""
	}
	dir := -1
	if !strings.HasPrefix(path, "/") {
		if dir, err = c.dir(ch.dir); err != nil || path == "" {
			return dir, err
		}
		defer unix.Close(dir)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if ch.noFollow {
		how.Flags |= unix.O_NOFOLLOW
	}
	for {
		fd, err := unix.Openat2(dir, path, &how)
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// dir opens what a descriptor of the caller is of, or its working directory.
func (c *call) dir(fd int32) (int, error) {
	name := "cwd"
	if fd != unix.AT_FDCWD {
		if fd < 0 {
			return -1, unix.EBADF
		}
		name = "fd/" + strconv.Itoa(int(fd))
	}
	out, err := unix.Openat(c.task, name, unix.O_PATH|unix.O_CLOEXEC, 0)
	switch err {
	case nil:
		return out, nil
	case unix.ENOENT:
		return -1, unix.EBADF
	}
	return -1, unix.EPERM // it cannot be looked into
}

// descriptor is the caller's descriptor that a path names. Its link in /proc would lead to one of this process.
func descriptor(path string) (int32, bool) {
	for _, prefix := range []string{"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"} {
		if text, ok := strings.CutPrefix(path, prefix); ok {
			n, err := strconv.ParseInt(text, 10, 32)
			return int32(n), err == nil && n >= 0
		}
	}
	return 0, false
}

// read copies memory of the caller, of which less may be there than is asked for.
func (c *call) read(at uint64, b []byte) (int, error) {
	mem, err := unix.Openat(c.task, "mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, unix.EPERM // it cannot be looked into
	}
	defer unix.Close(mem)
	n, err := unix.Pread(mem, b, int64(at))
	if err != nil || n <= 0 {
		return 0, unix.EFAULT
	}
	return n, nil
}

// text copies a path.
func (c *call) text(at uint64) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := c.read(at, buf)
	if err != nil {
		return "", err
	}
	end := bytes.IndexByte(buf[:n], 0)
	switch {
	case end >= 0:
		return string(buf[:end]), nil
	case n == len(buf):
		return "", unix.ENAMETOOLONG
	}
	return "", unix.EFAULT
}

// numbers copies numbers of 64 bits.
func (c *call) numbers(at uint64, out []int64) error {
	buf := make([]byte, 8*len(out))
	n, err := c.read(at, buf)
	if err != nil {
		return err
	}
	if n < len(buf) {
		return unix.EFAULT
	}
	for i := range out {
		out[i] = int64(binary.NativeEndian.Uint64(buf[8*i:]))
	}
	return nil
}
