//go:build !unix

package transfer

import "os"

// openFlags open a file for reading.
const openFlags = os.O_RDONLY
