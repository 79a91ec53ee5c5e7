package llmsandbox

import (
	"errors"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/environments"
	"github.com/llmsandbox/llmsandbox/internal/kernel"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/layers"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
	"github.com/llmsandbox/llmsandbox/internal/templates"
	"github.com/llmsandbox/llmsandbox/internal/transfer"
)

// Errors that the functions and methods of this package wrap; test for them with
// errors.Is. The text of an error says what failed, why, and what to do about it.
var (
	// ErrClosed: the sandbox was closed, by Close or at the end of its lifetime.
	ErrClosed = agentlink.ErrClosed
	// ErrLost: the sandbox or the stream into it went away, so what became of
	// the program cannot be known.
	ErrLost = agentlink.ErrLost
	// ErrDetached: the process or kernel goes on without this handle: after Detach, or because
	// another one has attached to it.
	ErrDetached = agentlink.ErrDetached
	// ErrEmptyCommand: Exec, Start or Shell was given nothing to run.
	ErrEmptyCommand = errors.New("command is empty")
	// ErrWorkdir: a program or kernel cannot start in its working directory (Dir), because that
	// does not exist, is not a directory, or may not be entered.
	ErrWorkdir = agentproto.ErrWorkdir
	// ErrKernelClosed: the kernel was closed.
	ErrKernelClosed = kernel.ErrClosed
	// ErrRefused: a policy refuses libraries; see RefusedError. Code that is refused is no
	// error but a result: StatusRefused.
	ErrRefused = errors.New("refused by the policy")
	// ErrToolchain: the program that runs the language is not in the sandbox.
	ErrToolchain = language.ErrToolchain
	// ErrEnvironmentNotFound: there is no environment of that name, and no lock at that path.
	ErrEnvironmentNotFound = environments.ErrNotFound
	// ErrTemplateNotFound: there is no template of that name.
	ErrTemplateNotFound = templates.ErrNotFound
	// ErrInstall: libraries could not be installed; see InstallError.
	ErrInstall = layers.ErrInstall
	// ErrOutput: a writer or callback of the caller failed; the run's result is
	// complete nevertheless.
	ErrOutput = errors.New("output could not be handed on")

	// ErrInvalid: an option or argument makes no sense.
	ErrInvalid = backend.ErrInvalid
	// ErrNotFound: no sandbox of that id lives.
	ErrNotFound = backend.ErrNotFound
	// ErrUnsupported: this machine or operating system cannot do this.
	ErrUnsupported = backend.ErrUnsupported
	// ErrNotEnforced: a limit that was asked for cannot be enforced here.
	ErrNotEnforced = backend.ErrNotEnforced
	// ErrImageNotFound: the image does not exist or cannot be read.
	ErrImageNotFound = backend.ErrImageNotFound
	// ErrImageInvalid: the image is damaged or refused.
	ErrImageInvalid = backend.ErrImageInvalid
	// ErrImageExists: a server's project has an image of that name already.
	ErrImageExists = errors.New("image exists")
	// ErrImageInUse: a server's project has a sandbox of the image.
	ErrImageInUse = errors.New("image in use")
	// ErrVolumeNotFound: there is no volume of that name.
	ErrVolumeNotFound = backend.ErrVolumeNotFound
	// ErrVolumeExists: there is a volume of that name already.
	ErrVolumeExists = backend.ErrVolumeExists
	// ErrVolumeInUse: a sandbox has the volume.
	ErrVolumeInUse = backend.ErrVolumeInUse
	// ErrPaused: the sandbox is paused, and does nothing until Resume.
	ErrPaused = backend.ErrPaused
	// ErrUnsafePath: a path has a ".." component, or names what must not be copied.
	ErrUnsafePath = tarcheck.ErrUnsafe
	// ErrNoSafeContent: there was nothing that may be copied; it is an
	// fs.ErrNotExist.
	ErrNoSafeContent = transfer.ErrNoSafeContent
	// ErrTooLarge: a limit of a copy was exceeded.
	ErrTooLarge = tarcheck.ErrTooLarge
	// ErrUnknownLanguage: no language of that name is known.
	ErrUnknownLanguage = language.ErrUnknown
)
