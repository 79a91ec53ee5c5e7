//go:build linux

package notify

// plain has nothing to do: this architecture has only the calls that all have.
func (c *call) plain() {}
