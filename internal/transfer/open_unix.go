//go:build unix

package transfer

import (
	"os"
	"syscall"
)

// openFlags open a file for reading without waiting: what was a regular file a moment
// ago may have become a FIFO without a writer.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK
