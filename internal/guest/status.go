//go:build linux

package guest

import (
	"io"
	"os"
)

// readRecord reads the next record of a subreaper; io.EOF means that it has ended.
func readRecord(status *os.File) (record, error) {
	var b [recordSize]byte
	if _, err := io.ReadFull(status, b[:]); err != nil {
		return record{}, err
	}
	return decodeRecord(&b), nil
}
