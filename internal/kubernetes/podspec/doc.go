// Package podspec decides what a sandbox's pod looks like. It is pure: it asks no
// cluster, and the same request always gives the same pod.
//
// The pod starts from a safe default: an unprivileged user, a read-only root, no
// capability, no token of the cluster, no way out, and every limit set. The caller's
// template is laid over it by a strategic merge, as kubectl does it. What would break
// the sandbox is refused. What loosens it is allowed, since the caller asked for it by
// name, and [Controls] reports it.
//
// # The agent
//
// The guest agent comes into a volume of its own, by an init container, before the
// sandbox's container starts. The latter mounts that volume read-only, so that code can
// never replace the agent that it is held by. See [InitContainer] for what is said with
// the init container.
package podspec
