//go:build !linux

package testpostgres

import "syscall"

// asUser has the server run as the caller, who is not root.
func asUser(string) (*syscall.SysProcAttr, error) { return &syscall.SysProcAttr{}, nil }
