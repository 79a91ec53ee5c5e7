// Package nsinit turns a process that was started in new, empty namespaces into the
// inside of a sandbox: it mounts the root filesystem, leaves the host's, gives up
// the host's identity and every privilege the guest agent does not need.
//
// The host decides everything and sends it as one [Plan] over a socket; the agent
// carries it out step by step in [Setup]. The plan's encoding lives here for both
// ends. It has no version: both ends come out of one build.
package nsinit
