package testengine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// The user that root makes. The numbers are fixed, because the files of its images,
// which outlive it, belong to them.
const (
	userName = "llmsandbox-engine"
	userID   = 61843
	subIDs   = 1_618_430_000 // and 65,536 from there on
)

// makeUser makes the user; what it returns ends the user's processes and removes it.
func makeUser() (end func() error, err error) {
	for _, p := range []string{"podman", "newuidmap", "newgidmap"} {
		if _, err := exec.LookPath(p); err != nil {
			return nil, testimage.Lack("Podman as an ordinary user needs " + p + " (apt-get install podman uidmap)")
		}
	}
	if u, err := user.LookupId(strconv.Itoa(userID)); err == nil && u.Username != userName {
		return nil, fmt.Errorf("user id %d, which the tests want, is %s's here", userID, u.Username)
	}
	// One that a killed test binary left behind goes first.
	if err := endUser(); err != nil {
		return nil, err
	}
	id, ids := strconv.Itoa(userID), fmt.Sprintf("%d-%d", subIDs, subIDs+65535)
	for _, argv := range [][]string{
		{"groupadd", "--gid", id, userName},
		{"useradd", "--uid", id, "--gid", id, "--no-create-home", "--home-dir", rootlessDir, "--shell", "/usr/sbin/nologin",
			"-K", "SUB_UID_COUNT=0", "-K", "SUB_GID_COUNT=0", userName},
		{"usermod", "--add-subuids", ids, "--add-subgids", ids, userName},
	} {
		if err := runCommand(argv...); err != nil {
			return nil, errors.Join(err, endUser())
		}
	}
	return endUser, nil
}

// endUser ends all that the user runs and removes it, if there is one.
func endUser() error {
	if _, err := user.Lookup(userName); err != nil {
		return nil
	}
	if err := endProcesses(); err != nil {
		return err
	}
	return runCommand("userdel", userName)
}

// endProcesses kills what belongs to the user or its subordinate ids. Whatever is
// forked in between is found by the next round.
func endProcesses() error {
	for {
		status, err := filepath.Glob("/proc/[0-9]*/status")
		if err != nil {
			return err
		}
		found := false
		for _, path := range status {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				return err
			}
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue // it has ended
			}
			if !ofUser(path) {
				unix.Close(fd)
				continue
			}
			found = true
			err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			if err == nil {
				err = awaitEnd(fd, fmt.Sprintf("process %d of %s", pid, userName))
			}
			unix.Close(fd)
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
		if !found {
			return nil
		}
	}
}

// ofUser reports whether a process that has not ended is the user's.
func ofUser(statusFile string) bool {
	data, err := os.ReadFile(statusFile)
	if err != nil {
		return false
	}
	for _, line := range strings.Split(string(data), "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch fields := strings.Fields(value); name {
		case "State":
			if fields[0] == "Z" { // ended, and not waited for by its parent
				return false
			}
		case "Uid":
			uid, err := strconv.Atoi(fields[0])
			return err == nil && (uid == userID || uid >= subIDs && uid < subIDs+65536)
		}
	}
	return false
}

func runCommand(argv ...string) error {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, out)
	}
	return nil
}
