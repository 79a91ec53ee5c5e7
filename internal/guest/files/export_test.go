//go:build linux

package files

import "time"

// WithoutOpenat2 makes this process behave as on a kernel without openat2.
func WithoutOpenat2() { noOpenat2.Store(true) }

// StartLater has all files changed before the service started.
func (s *Service) StartLater() { s.started = s.started.Add(time.Hour) }

// Unescape is how names come from mountinfo.
var Unescape = unescape
