//go:build linux

package files

// WithoutOpenat2 makes this process behave as on a kernel without openat2.
func WithoutOpenat2() { noOpenat2.Store(true) }
