package agentproto

// What an agent does at once that needs a thread. The Go runtime ends a program that needs
// one and cannot make it, so each is bounded.
const (
	// MaxRunning is how many threads may run Go code, however many CPUs there are.
	MaxRunning = 4
	// MaxAtWork is how many goroutines may be in system calls about files. Each keeps a
	// thread while it waits for a disk or a server.
	MaxAtWork = 4
	// SpareThreads is how many threads an agent has beyond those it needs when it starts:
	// for these, for one goroutine that looks into /proc and for one that waits for
	// descriptors. Where the agent counts among a sandbox's processes, a backend adds
	// them to the limit.
	SpareThreads = MaxRunning + MaxAtWork + 2
)
