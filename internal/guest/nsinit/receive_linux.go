package nsinit

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// receive reads the plan, one packet with the mount descriptors beside it.
func receive(fd int) (*Plan, []int, error) {
	buf := make([]byte, maxPlan)
	oob := make([]byte, unix.CmsgSpace(MaxFDs*4))
	var n, oobn, flags int
	for {
		var err error
		n, oobn, flags, _, err = unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return nil, nil, err
		}
	}
	if n == 0 {
		return nil, nil, io.ErrUnexpectedEOF // the host gave up before it had a plan
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		return nil, nil, errors.New("larger than an agent accepts")
	}
	fds, err := parseFDs(oob[:oobn])
	if err != nil {
		return nil, nil, err
	}
	plan, err := Decode(buf[:n])
	return plan, fds, err
}

func parseFDs(oob []byte) ([]int, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for i := range msgs {
		more, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			return nil, err
		}
		fds = append(fds, more...)
	}
	return fds, nil
}
