package nsinit

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/wire"
)

// CloneFlags are the namespaces that an agent is started in.
const CloneFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// SetupCaps are what the agent needs, in its own user namespace, until it is set up.
// They are ambient, because to the host it is an ordinary process whose exec would
// drop them.
var SetupCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN,
	unix.CAP_KILL, unix.CAP_SYS_CHROOT, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_SYS_TIME, unix.CAP_SYS_RESOURCE}

// A Launch has an agent started below another sandbox, or waits for the end of one. It goes with descriptors: the agent's program, those that are
// its own from 0 on, and those by which a thread joins its control groups.
type Launch struct {
	Args  []string
	Files uint32 // how many are its own
	// UID and GID are the user that owns its user namespace.
	UID, GID uint32
	// UIDs and GIDs are its users.
	UIDs, GIDs []IDs
	// Groups lets it drop groups.
	Groups bool
	// AsRoot starts it as root of its user namespace, who may reach what it takes from the host.
	AsRoot bool
	// Wait is the pid of one that has ended, which is waited for; 0: one is started.
	Wait uint32
}

// IDs are one user or group: its id inside, and in the other sandbox's user namespace.
type IDs struct{ Inside, Outside uint32 }

// Fields names the fields in their order on the wire.
func (l *Launch) Fields(c *wire.Coder) {
	c.Fields(&l.Args, &l.Files, &l.UID, &l.GID, &l.Groups, &l.AsRoot, &l.Wait)
	for _, ids := range []*[]IDs{&l.UIDs, &l.GIDs} {
		wire.List(c, ids, 2, func(c *wire.Coder, id *IDs) { c.Fields(&id.Inside, &id.Outside) })
	}
}

// A Launched is the answer. A pidfd goes with it if an agent was started.
type Launched struct {
	PID    uint32 // in the other sandbox's pid namespace
	Status uint32 // of one that was waited for, as wait(2) has it
	Error  string
}

// Fields names the fields in their order on the wire.
func (l *Launched) Fields(c *wire.Coder) { c.Fields(&l.PID, &l.Status, &l.Error) }

// ReceiveFDs reads one packet of a socket with the descriptors beside it; io.ErrUnexpectedEOF means that the other end has closed it.
func ReceiveFDs(socket int) (text []byte, fds []int, err error) {
	text = make([]byte, maxPlan)
	oob := make([]byte, unix.CmsgSpace(maxFDs*4))
	var n, oobn, flags int
	for {
		if n, oobn, flags, _, err = unix.Recvmsg(socket, text, oob, unix.MSG_CMSG_CLOEXEC); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if fds, err = parseFDs(oob[:oobn]); err != nil {
		return nil, nil, err
	}
	switch {
	case n == 0:
		return nil, nil, io.ErrUnexpectedEOF
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		return nil, nil, errors.New("larger than is accepted")
	}
	return text[:n], fds, nil
}

// maxFDs is how many descriptors the kernel lets a packet have.
const maxFDs = 253
