// Package podman runs sandboxes as containers of Podman, of root or of an ordinary user,
// on this machine or another one. It speaks to Podman's service by the Docker API that
// it offers; docs/podman.md describes what differs.
package podman
