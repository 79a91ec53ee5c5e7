package backend

import "errors"

// Errors that a backend's methods wrap.
var (
	// ErrInvalid: an option or argument makes no sense.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound: no sandbox of that id lives.
	ErrNotFound = errors.New("no such sandbox")
	// ErrUnsupported: this machine or operating system cannot run this backend.
	ErrUnsupported = errors.New("not supported here")
	// ErrNotEnforced: a limit that was asked for cannot be enforced here.
	ErrNotEnforced = errors.New("limit cannot be enforced")
	// ErrImageNotFound: the image does not exist or cannot be read.
	ErrImageNotFound = errors.New("image not found")
	// ErrImageInvalid: the image is damaged or refused.
	ErrImageInvalid = errors.New("image is damaged or refused")
	// ErrLayerNotFound: no layer has that key.
	ErrLayerNotFound = errors.New("no such layer")
	// ErrZygoteEnded: the process that is forked into sandboxes does not fork any more.
	ErrZygoteEnded = errors.New("the process that is forked into sandboxes has ended")
	// ErrVolumeNotFound: there is no volume of that name.
	ErrVolumeNotFound = errors.New("no such volume")
	// ErrVolumeExists: there is a volume of that name already.
	ErrVolumeExists = errors.New("volume exists")
	// ErrVolumeInUse: a sandbox has the volume.
	ErrVolumeInUse = errors.New("volume is in use")
	// ErrPaused: the sandbox is paused.
	ErrPaused = errors.New("the sandbox is paused")
	// ErrLocked: another process holds what is needed.
	ErrLocked = errors.New("in use by another process")
)
