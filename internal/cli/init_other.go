//go:build !linux

package cli

func isInit() bool { return false }

func runInit() (int, error) { panic("only Linux has containers whose first process this is") }
