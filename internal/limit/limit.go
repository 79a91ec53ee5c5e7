// Package limit has the bounds of a sandbox's limits: below the least ones not even an
// interpreter starts, above the largest ones the kernel takes no value.
package limit

import "time"

// The bounds. Bytes are of memory and of disk.
const (
	MinMemory  = 16 << 20 // the agent and one small interpreter
	MinDisk    = 1 << 20
	MinCPUs    = 0.01
	MaxCPUs    = 4096
	MaxPIDs    = 1 << 22 // the kernel's own PID_MAX_LIMIT
	MinTimeout = time.Millisecond
)
