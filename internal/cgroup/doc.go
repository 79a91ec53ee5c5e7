// Package cgroup holds sandboxes to their limits of memory, CPU and processes by
// Linux control groups, version 1 and 2, and reports what can be enforced here.
//
// Each sandbox gets one group (on version 1 one directory per controller). Its first
// process is born inside it, so nothing it does is ever outside the limits.
// An ordinary user mostly has no group of their own to write in; there the sandbox's
// agent is put into a transient scope by the user's systemd. In a service with
// Delegate=yes there is one, and it is divided among the sandboxes.
package cgroup
