package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// attachLoop returns a loop device over backing that frees itself when it is no
// longer used.
func attachLoop(backing *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("no loop devices: %w", err)
	}
	defer control.Close()
	config := unix.LoopConfig{Fd: uint32(backing.Fd()), Size: 4096, Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
	// Between asking for a free device and taking it another process may be faster.
	const attempts = 64
	for range attempts {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("no free loop device: %w", err)
		}
		loop, err := os.OpenFile(filepath.Join("/dev", fmt.Sprintf("loop%d", n)), os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("open loop device: %w", err)
		}
		err = unix.IoctlLoopConfigure(int(loop.Fd()), &config)
		if err == nil {
			return loop, nil
		}
		loop.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("set up loop device: %w", err)
		}
	}
	return nil, errors.New("loop devices are taken faster than they are made")
}
