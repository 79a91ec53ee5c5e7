package engine

import "io"

// A Build is an image to make from a Dockerfile. The classic builder makes it, which
// every engine has; what only BuildKit knows, such as RUN --mount, fails on Docker.
type Build struct {
	// Dockerfile is the path of the Dockerfile; "" is Dockerfile in the context.
	Dockerfile string
	// Content is the Dockerfile itself, in place of a path.
	Content string
	// Context is the directory that COPY and ADD take from, "" is none. Its .dockerignore
	// is honoured; links in it are kept as links and not followed; what is no file,
	// directory or link is left out. Files get the owner root and one fixed time.
	Context string
	// Args are the build arguments. They are no place for secrets: the image's history
	// shows them.
	Args     map[string]string
	Target   string // stage to build; "" is the last
	Platform string // e.g. "linux/arm64"; "" is the engine's own
	// Network is the network of RUN: "" is the engine's default, "none", "host", or a
	// network's name.
	Network string
	Labels  map[string]string
	// NoCache builds every step again, also when the same build was made before.
	NoCache bool
	// Log, when set, gets what the build prints as it comes. It is not cleaned: on a
	// terminal it can do harm.
	Log io.Writer
	// MaxContext bounds the bytes of the context; 0 means 2 GiB.
	MaxContext int64
}
