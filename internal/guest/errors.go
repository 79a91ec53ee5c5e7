//go:build linux

package guest

import (
	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// steps names what failed, by the subreaper's step numbers.
var steps = [...]string{
	stepFork:       "fork the program",
	stepStdio:      "set up its streams",
	stepTTY:        "give it its terminal",
	stepRlimit:     "set its resource limits",
	stepGroups:     "drop its groups",
	stepGID:        "set its gid",
	stepUID:        "set its uid",
	stepCaps:       "drop its capabilities",
	stepDir:        "enter its working folder",
	stepNoNewPrivs: "set no_new_privs",
	stepLandlock:   "restrict it with Landlock",
	stepControl:    "set up its control pipes",
	stepSeccomp:    "load its seccomp filter",
	stepExec:       "execute it",
}

// startError reports why a program could not be started.
func startError(argv []string, dir string, step int32, errno unix.Errno) error {
	switch step {
	case stepDir:
		return dirError(dir, errno)
	case stepExec:
		return execError(argv[0], errno)
	case stepFork:
		return resourceError("fork "+argv[0], errno)
	}
	name := "start it"
	if step >= 0 && int(step) < len(steps) {
		name = steps[step]
	}
	code := agentproto.CodeInternal
	if errno == unix.EPERM || errno == unix.EACCES {
		code = agentproto.CodePermission
	}
	return agentproto.Errorf(code, "start %q: %s: %v", argv[0], name, errno)
}

func dirError(dir string, errno unix.Errno) error {
	switch errno {
	case unix.ENOENT:
		return agentproto.Errorf(agentproto.CodeNotFound, "working folder %q does not exist", dir)
	case unix.ENOTDIR:
		return agentproto.Errorf(agentproto.CodeNotDir, "working folder %q is not a folder", dir)
	case unix.EACCES:
		return agentproto.Errorf(agentproto.CodePermission, "working folder %q may not be entered by the program's user", dir)
	}
	return agentproto.Errorf(agentproto.CodeInternal, "working folder %q: %v", dir, errno)
}

func execError(program string, errno unix.Errno) error {
	switch errno {
	case unix.ENOENT, unix.ENOTDIR:
		return agentproto.Errorf(agentproto.CodeNotFound, "program %q not found (or the interpreter in its first line is missing)", program)
	case unix.EACCES, unix.EPERM:
		return agentproto.Errorf(agentproto.CodeNotExecutable, "program %q may not be executed by the program's user: %v", program, errno)
	case unix.ENOEXEC:
		return agentproto.Errorf(agentproto.CodeNotExecutable, "program %q is neither a program of this machine nor a script with a #! line", program)
	case unix.E2BIG:
		return agentproto.Errorf(agentproto.CodeTooLarge, "the arguments and the environment of %q are longer than the kernel takes: pass them in a file", program)
	case unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE:
		return resourceError("execute "+program, errno)
	}
	return agentproto.Errorf(agentproto.CodeNotExecutable, "program %q cannot be executed: %v", program, errno)
}
