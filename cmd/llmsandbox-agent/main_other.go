//go:build !linux

// Command llmsandbox-agent is the guest agent, which runs on Linux only.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "llmsandbox-agent runs inside Linux sandboxes only")
	os.Exit(1)
}
