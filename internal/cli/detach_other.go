//go:build !linux

package cli

import (
	"fmt"
	"syscall"

	"github.com/llmsandbox/llmsandbox"
)

func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func replaceDescriptor(int, int) error {
	return fmt.Errorf("kept sandboxes need Linux: %w", llmsandbox.ErrUnsupported)
}
