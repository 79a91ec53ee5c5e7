// Package engine runs sandboxes as containers of an engine that speaks Docker's API.
// Packages docker and podman are this package with a connection to their engine.
//
// The guest agent is the container's main process. It comes from a read-only volume
// that is filled once per engine and agent version, and the stream to it is the
// container's own stdin and stdout: no call of the engine is on the path of a run. The
// engine closes that stdin when the owner's process goes, so that the agent ends and
// the engine removes the container, whatever became of the owner.
package engine
