//go:build linux

package files

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// pathError says that op failed on a path of the sandbox.
func pathError(op, path string, err error) error {
	var known *agentproto.Error
	if errors.As(err, &known) {
		return known
	}
	return agentproto.Errorf(codeOf(err), "%s %q: %s", op, path, reason(err))
}

func codeOf(err error) agentproto.ErrorCode {
	var errno unix.Errno
	switch {
	case errors.Is(err, tarcheck.ErrTooLarge):
		return agentproto.CodeTooLarge
	case errors.Is(err, tarcheck.ErrDamaged):
		return agentproto.CodeBadRequest
	case !errors.As(err, &errno):
		return agentproto.CodeInternal
	}
	switch errno {
	case unix.ENOENT:
		return agentproto.CodeNotFound
	case unix.EEXIST:
		return agentproto.CodeExists
	case unix.EACCES, unix.EPERM, unix.EROFS:
		return agentproto.CodePermission
	case unix.ENOTDIR:
		return agentproto.CodeNotDir
	case unix.EISDIR:
		return agentproto.CodeIsDir
	case unix.ENOTEMPTY:
		return agentproto.CodeNotEmpty
	case unix.ENOSPC, unix.EDQUOT:
		return agentproto.CodeNoSpace
	case unix.ELOOP, unix.EXDEV, unix.ENXIO:
		return agentproto.CodeUnsafe
	case unix.ENAMETOOLONG, unix.EINVAL:
		return agentproto.CodeBadRequest
	case unix.EFBIG:
		return agentproto.CodeTooLarge
	case unix.EMFILE, unix.ENFILE, unix.EAGAIN, unix.EBUSY, unix.EADDRINUSE:
		return agentproto.CodeBusy
	}
	return agentproto.CodeInternal
}

func reason(err error) string {
	switch {
	case errors.Is(err, unix.ELOOP):
		return "a symbolic link is in the way that must not be followed"
	case errors.Is(err, unix.ENXIO):
		return "it is not a regular file"
	case errors.Is(err, unix.EXDEV):
		return "it is in another file system"
	case errors.Is(err, unix.EISDIR):
		return "a folder is there"
	case errors.Is(err, unix.ENOTDIR):
		return "something on the way to it is not a folder"
	case errors.Is(err, unix.EROFS):
		return "this part of the sandbox is read-only"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return "no space left within the disk limit"
	}
	return err.Error()
}
