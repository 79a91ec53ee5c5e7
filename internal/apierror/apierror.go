// Package apierror is what the server of the HTTP API and its client agree on about errors: the codes by which programs tell them apart.
package apierror

import (
	"io"
	"io/fs"
	"net/http"

	"github.com/llmsandbox/llmsandbox"
)

// A Kind is a class of errors with the status and the code of its answers.
type Kind struct {
	Err    error
	Status int
	Code   string
}

// Kinds are those of the library. The first that fits an error is its kind. Several classes of one code mean the same to a client.
var Kinds = []Kind{
	{llmsandbox.ErrKernelClosed, http.StatusNotFound, "kernel_closed"},
	{llmsandbox.ErrNotFound, http.StatusNotFound, "not_found"},
	{llmsandbox.ErrClosed, http.StatusNotFound, "not_found"},
	{llmsandbox.ErrDetached, http.StatusConflict, "detached"},
	{llmsandbox.ErrUnknownLanguage, http.StatusUnprocessableEntity, "unknown_language"},
	{llmsandbox.ErrEmptyCommand, http.StatusUnprocessableEntity, "empty_command"},
	{llmsandbox.ErrWorkdir, http.StatusUnprocessableEntity, "workdir"},
	{llmsandbox.ErrToolchain, http.StatusUnprocessableEntity, "toolchain"},
	{llmsandbox.ErrEnvironmentNotFound, http.StatusUnprocessableEntity, "environment_not_found"},
	{llmsandbox.ErrTemplateNotFound, http.StatusUnprocessableEntity, "template_not_found"},
	{llmsandbox.ErrImageExists, http.StatusConflict, "image_exists"},
	{llmsandbox.ErrImageInUse, http.StatusConflict, "image_in_use"},
	{llmsandbox.ErrVolumeNotFound, http.StatusNotFound, "volume_not_found"},
	{llmsandbox.ErrVolumeExists, http.StatusConflict, "volume_exists"},
	{llmsandbox.ErrVolumeInUse, http.StatusConflict, "volume_in_use"},
	{llmsandbox.ErrPaused, http.StatusConflict, "paused"},
	{llmsandbox.ErrRefused, http.StatusForbidden, "refused"},
	{llmsandbox.ErrInstall, http.StatusUnprocessableEntity, "install"},
	{llmsandbox.ErrImageNotFound, http.StatusUnprocessableEntity, "image_not_found"},
	{llmsandbox.ErrNotEnforced, http.StatusUnprocessableEntity, "not_enforced"},
	{llmsandbox.ErrUnsupported, http.StatusUnprocessableEntity, "unsupported"},
	{llmsandbox.ErrUnsafePath, http.StatusUnprocessableEntity, "unsafe_path"},
	{llmsandbox.ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large"},
	{llmsandbox.ErrTooLarge, http.StatusRequestEntityTooLarge, "request_entity_too_large"}, // of a request that did not come to a handler
	{llmsandbox.ErrInvalid, http.StatusUnprocessableEntity, "invalid"},
	{fs.ErrNotExist, http.StatusNotFound, "file_not_found"},
	{fs.ErrExist, http.StatusConflict, "exists"},
	{io.ErrClosedPipe, http.StatusConflict, "input_ended"},
	{fs.ErrPermission, http.StatusForbidden, "permission"},
	{llmsandbox.ErrLost, http.StatusServiceUnavailable, "lost"},
}

// Codes with which a server that does not serve at the moment answers.
const (
	Stopping    = "stopping"
	NotReady    = "not_ready"
	Unavailable = "service_unavailable" // whose key it is cannot be found out
)

// BegunNothing reports whether an answer means that what was asked for was not begun, and may be asked for again later.
func BegunNothing(status int, code string) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable && (code == Stopping || code == NotReady || code == Unavailable)
}
